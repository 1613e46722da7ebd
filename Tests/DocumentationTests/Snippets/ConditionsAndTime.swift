import Foundation
import Operations
import OperationsTestSupport
import Testing

/// The page ConditionsAndTime.
@Suite(.timeLimit(.minutes(5)))
struct ConditionsAndTime: Printing {
  private actor Session {
    private(set) var isSignedIn = false
    func signIn() { isSignedIn = true }
  }

  private enum SessionError: Error, CustomStringConvertible {
    case signedOut
    var description: String { "signed out" }
  }

  private let queue = OperationQueue()
  let printed = Journal<String>()

  @Test func conditions() async throws {
    let session = Session()
    func upload() -> AsyncOperation {
      let upload = operation("upload")
      upload.addCondition(.noFailedDependencies)
      upload.addCondition(
        OperationCondition(name: "signed in") { _ in
          guard await session.isSignedIn else { throw SessionError.signedOut }
        }
      )
      return upload
    }
    do { try await queue.run(upload()) } catch { print(error) }
    #expect(printed.entries == ["“upload” did not run because its condition “signed in” was not met: signed out."])
    await session.signIn()
    try await queue.run(upload())
  }

  @Test func combinations() async throws {
    let onWiFi = OperationCondition(name: "on Wi-Fi") { _ in throw SessionError.signedOut }
    let onCellular = OperationCondition(name: "on cellular") { _ in }
    let mayUseCellular = OperationCondition(name: "may use cellular") { _ in }
    let upload = AsyncOperation()
    upload.addCondition(.any(onWiFi, .all(onCellular, mayUseCellular)))
    try await queue.run(upload)
  }

  @Test func aDelay() async {
    let (clock, request, nextRequest) = (ManualClock(), AsyncOperation(), AsyncOperation())
    request ==> DelayOperation(.seconds(1)) ==> nextRequest
    let group = GroupOperation { nextRequest }
    group.clock = clock
    queue.addOperation(group)
    await clock.waitForSleepers(1)
    #expect(request.isFinished && !nextRequest.isFinished)
    clock.advance(by: .seconds(1))
    await group.finished()
  }

  private typealias Download = Load

  private struct Order: Sendable {
    let isReady = false
    let isComplete = true
  }

  private final class LoadOrder: ResultOperation<Order>, @unchecked Sendable {
    init(_ id: Int) { super.init { Order() } }
  }

  @Test func retries() async throws {
    let (url, id) = ("home", 7)
    // swift-format-ignore: OnlyOneTrailingClosureArgument
    let page = RetryOperation(
      attempts: 5,
      backoff: .exponential(initial: .milliseconds(100), cap: .seconds(10), jitter: 0.5),
      retryWhen: { result, _ in
        guard case .failure(let busy as ServerBusy) = result else { return .stop }
        return .retry(after: busy.retryAfter)
      }
    ) { _ in Download(url) }
    #expect(try await queue.run(page) == "text of home")

    let patient = RetryOperation(attempts: 3) { _ in
      let download = Download(url)
      download.timeout = .seconds(10)
      return download
    }
    patient.timeout = .seconds(60)
    #expect(try await queue.run(patient) == "text of home")

    // swift-format-ignore: OnlyOneTrailingClosureArgument
    let order = RetryOperation(attempts: 10, backoff: .constant(.seconds(1)), retryUnless: { $0.isComplete }) { _ in
      LoadOrder(id)
    }
    #expect(try await queue.run(order).isComplete)
  }

  @Test(arguments: [false, true]) func aValueInEveryAttempt(isMissing: Bool) async throws {
    let (sent, thumbnail) = (Journal<String>(), Load(isMissing ? "missing" : "home"))
    @Sendable func send(_ page: String) async throws {
      sent.write(page)
      if sent.count == 1 { throw NoSuchPage(page: page) }
    }
    func run() async throws {
      let upload = RetryOperation(attempts: 3) { _ in
        try await send(thumbnail.value)
      }
      upload.addCondition(.noFailedDependencies)
      try await queue.run(thumbnail ==> upload)
    }
    if isMissing {
      let error = await #expect(throws: OperationError.self) { try await run() }
      #expect(error?.code == .conditionFailed)
    } else {
      try await run()
    }
    #expect(sent.count == (isMissing ? 0 : 2))
  }

  private final class CheckStatus: AsyncOperation, @unchecked Sendable { init(of order: Order) {} }

  @Test func aRepetition() async {
    let (order, clock) = (Order(), ManualClock())
    let pause = Backoff.constant(.seconds(5))
    let poll = RepeatOperation(pausing: pause) { iteration in
      iteration <= 12 && !order.isReady ? CheckStatus(of: order) : nil
    }
    poll.clock = clock
    queue.addOperation(poll)
    await clock.run(until: poll)
    #expect(poll.isSuccessful && clock.now.offset == .seconds(60))
  }
}
