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

  /// Fails at the first request, and never answers the second.
  private final class Download: AsyncOperation, @unchecked Sendable {
    private let requests: Journal<Void>

    init(_ requests: Journal<Void>) { self.requests = requests }

    override func execute() {
      requests.write(())
      switch requests.count {
      case 1: finish(with: ServerBusy(retryAfter: .seconds(7)))
      case 2: break
      default: finish()
      }
    }

    override func didCancel() { finish() }
  }

  private final class Fetch: ResultOperation<String>, @unchecked Sendable {
    init(_ url: String, obeying rules: [String]) { super.init { rules.contains(url) ? "" : "text of \(url)" } }
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

  @Test func aRetry() async throws {
    let (clock, url) = (ManualClock(), Journal<Void>())
    // swift-format-ignore: OnlyOneTrailingClosureArgument
    let page = RetryOperation(
      attempts: 5,
      backoff: .exponential(
        initial: .milliseconds(100),
        cap: .seconds(10),
        jitter: 0.5
      ),
      retryWhen: { result, _ in
        guard case .failure(let busy as ServerBusy) = result else {
          return .stop
        }
        return .retry(after: busy.retryAfter)
      }
    ) { _ in Download(url) }
    page.clock = clock
    queue.addOperation(page)
    await clock.waitForSleepers(1)
    #expect(url.count == 1)
    clock.advance(by: .seconds(7))
    await url.reaches(2)
    page.cancel()
    await page.finished()
    #expect(page.attemptErrors.count == 1)
  }

  @Test func aRetryOfWhatTimesOut() async throws {
    let (clock, url) = (ManualClock(), Journal<Void>())
    let patient = RetryOperation(attempts: 3) { _ in
      let download = Download(url)
      download.timeout = .seconds(10)
      return download
    }
    patient.timeout = .seconds(60)
    patient.clock = clock
    queue.addOperation(patient)
    await url.reaches(2)
    await clock.waitForSleepers(2)
    clock.advance(by: .seconds(10))
    try await patient.completed()
    #expect(patient.attemptErrors.count == 2 && OperationError.Code.timedOut ~= patient.attemptErrors[1])
  }

  @Test func aRetryWithAValue() async throws {
    let (robots, url) = (ResultOperation { ["/private"] }, "/home")
    let allowedPage = robots.flatMap { rules in
      RetryOperation(attempts: 3) { _ in Fetch(url, obeying: rules) }
    }
    #expect(try await queue.run(allowedPage) == "text of /home")
  }

  private final class LoadOrder: ResultOperation<(id: Int, isComplete: Bool)>, @unchecked Sendable {
    init(_ id: Journal<Int>) {
      super.init {
        id.write(7)
        return (7, id.count == 3)
      }
    }
  }

  @Test func aRetryUntilAValueIsAcceptable() async throws {
    let (id, clock) = (Journal<Int>(), ManualClock())
    // swift-format-ignore: OnlyOneTrailingClosureArgument
    let order = RetryOperation(attempts: 10, backoff: .constant(.seconds(1)), retryUnless: { $0.isComplete }) { _ in
      LoadOrder(id)
    }
    order.clock = clock
    queue.addOperation(order)
    for _ in 0..<2 {
      await clock.waitForSleepers()
      clock.advance(by: .seconds(1))
    }
    #expect(try await order.value.isComplete && id.count == 3)
  }

  private struct Order: Sendable {
    let checks = Journal<Int>()
    var isReady: Bool { checks.count == 3 }
  }

  private final class CheckStatus: ResultOperation<Void>, @unchecked Sendable {
    init(of order: Order) { super.init { order.checks.write(order.checks.count) } }
  }

  @Test func aRepetition() async throws {
    let (order, clock) = (Order(), ManualClock())
    let pause = Backoff.constant(.seconds(5))
    let poll = RepeatOperation(pausing: pause) { iteration in
      iteration <= 12 && !order.isReady ? CheckStatus(of: order) : nil
    }
    poll.clock = clock
    queue.addOperation(poll)
    for _ in 1...3 {
      await clock.waitForSleepers(1)
      clock.advance(by: .seconds(5))
    }
    try await poll.completed()
    #expect(order.checks.count == 3)
  }
}
