import Foundation
import Operations
import OperationsTestSupport
import Testing

/// The page ConditionsAndTime.
@Suite(.timeLimit(.minutes(5)))
struct ConditionsAndTime {
  private actor Session {
    private(set) var isSignedIn = false
    func signIn() { isSignedIn = true }
  }

  private enum SessionError: Error, CustomStringConvertible {
    case signedOut
    var description: String { "signed out" }
  }

  private struct ServerBusy: Error { let retryAfter: Duration }

  private struct Server: Sendable {
    /// Never answers.
    func ask(_ completion: @escaping @Sendable () -> Void) {}
  }

  private final class Download: AsyncOperation, @unchecked Sendable {
    private let server: FlakyServer

    init(_ server: FlakyServer) { self.server = server }

    override func execute() {
      server.requests.write(())
      switch server.requests.count {
      case 1: finish(with: ServerBusy(retryAfter: .seconds(7)))
      case 2: break  // never finishes
      default: finish()
      }
    }

    override func didCancel() { finish() }
  }

  private struct FlakyServer: Sendable { let requests = Journal<Void>() }

  private struct Forbidden: Error {}

  private final class Fetch: ResultOperation<String>, @unchecked Sendable {
    init(_ url: String, obeying rules: [String]) {
      super.init { if rules.contains(url) { throw Forbidden() } else { "text of \(url)" } }
    }
  }

  private let queue = OperationQueue()
  private let printed = Journal<String>()

  private func print(_ items: Any...) { printed.write(items.map { "\($0)" }.joined(separator: " ")) }

  @Test func conditions() async throws {
    let session = Session()
    func upload() -> AsyncOperation {
      let upload = AsyncOperation().named("upload")
      upload.addCondition(.noFailedDependencies)
      upload.addCondition(
        OperationCondition(name: "signed in") { _ in
          guard await session.isSignedIn else { throw SessionError.signedOut }
        }
      )
      return upload
    }
    do { try await queue.run(upload()) } catch { print(error) }
    #expect(
      printed.entries == ["“upload” did not run because its condition “signed in” was not met: signed out."]
    )
    await session.signIn()
    try await queue.run(upload())
  }

  @Test(arguments: [false, true])
  func combinations(isAllowed: Bool) async {
    let onWiFi = OperationCondition(name: "on Wi-Fi") { _ in throw SessionError.signedOut }
    let onCellular = OperationCondition(name: "on cellular") { _ in }
    let mayUseCellular = OperationCondition(name: "may use cellular") { _ in
      if !isAllowed { throw SessionError.signedOut }
    }
    let upload = AsyncOperation()
    upload.addCondition(.any(onWiFi, .all(onCellular, mayUseCellular)))
    queue.addOperation(upload)
    await upload.finished()
    #expect(upload.isSuccessful == isAllowed)
  }

  @Test func aTimeout() async {
    let server = Server()
    let answer = AsyncBlockOperation { operation in server.ask { operation.finish() } }.named("answer")
    answer.timeout = .milliseconds(20)
    do { try await queue.run(answer) } catch { print(error) }
    #expect(printed.entries == ["“answer” was cancelled because it took longer than 0.02 seconds."])
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
    let (clock, url) = (ManualClock(), FlakyServer())
    // swift-format-ignore: OnlyOneTrailingClosureArgument
    let page = RetryOperation(
      attempts: 5,
      backoff: .exponential(initial: .milliseconds(100), cap: .seconds(10), jitter: 0.5),
      retryIf: { error, _ in
        guard let busy = error as? ServerBusy else { return .stop }
        return .retry(after: busy.retryAfter)
      }
    ) { _ in Download(url) }
    page.clock = clock
    queue.addOperation(page)
    await clock.waitForSleepers(1)
    #expect(url.requests.count == 1)
    clock.advance(by: .seconds(7))
    await url.requests.reaches(2)
    page.cancel()
    await page.finished()
    #expect(page.attemptErrors.count == 1)
  }

  @Test func aRetryOfWhatTimesOut() async throws {
    let (clock, url) = (ManualClock(), FlakyServer())
    let patient = RetryOperation(attempts: 3) { _ in
      let download = Download(url)
      download.timeout = .seconds(10)
      return download
    }
    patient.timeout = .seconds(60)
    patient.clock = clock
    queue.addOperation(patient)
    await url.requests.reaches(2)
    await clock.waitForSleepers(2)
    clock.advance(by: .seconds(10))
    try await patient.completed()
    #expect(patient.attemptErrors.count == 2 && OperationError.Code.timedOut ~= patient.attemptErrors[1])
  }

  @Test(arguments: ["/home", "/private"])
  func aRetryWithAValue(url: String) async {
    let robots = ResultOperation { ["/private"] }
    let allowedPage = robots.flatMap { rules in
      RetryOperation(attempts: 3) { _ in Fetch(url, obeying: rules) }
    }
    queue.addGraph(endingIn: allowedPage)
    await allowedPage.finished()
    #expect((try? allowedPage.result?.get()) == (url == "/home" ? "text of /home" : nil))
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
    let poll = RepeatOperation(pausing: .constant(.seconds(5))) { iteration in
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

  @Test func aClock() async {
    let importer = GroupOperation("Import") { AsyncBlockOperation { _ in } }
    importer.timeout = .seconds(30)
    let clock = ManualClock()
    importer.clock = clock
    queue.addOperation(importer)
    await clock.waitForSleepers(1)  // a sleeper has begun to wait
    clock.advance(by: .seconds(30))  // and here it has come: what was due has been done
    #expect(importer.isFinished)
    #expect(importer.errors.count == 1)
  }
}
