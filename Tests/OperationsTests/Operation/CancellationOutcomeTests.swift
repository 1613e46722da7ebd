import Foundation
import OperationsTestSupport
import Soak
import Testing

@testable import Operations

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// What an operation ends with that was cancelled.
@Suite(.timeLimit(.minutes(5)))
struct CancellationOutcomeTests {
  private let queue = OperationQueue()
  private let journal = Journal<String>()

  private static let cancellations: [any Error] = [
    CancellationError(), URLError(.cancelled), CocoaError(.userCancelled), POSIXError(.ECANCELED),
    NSError(domain: NSURLErrorDomain, code: -999),
    AggregateError([
      OperationFailure(path: ["a"], error: CancellationError()),
      OperationFailure(path: [], error: URLError(.cancelled)),
    ]),
  ]

  private static let others: [any Error] = [
    URLError(.timedOut), CocoaError(.fileNoSuchFile), POSIXError(.ENOENT), NSError(domain: "mine", code: -999),
    OperationError(.timedOut, "late"), TestError("other"),
    AggregateError([
      OperationFailure(path: [], error: CancellationError()), OperationFailure(path: ["a"], error: TestError("other")),
    ]),
  ]

  @Test func errorsThatMeanCancelled() {
    #expect(Self.cancellations.allSatisfy { meansCancelled($0) })
    #expect(!Self.others.contains { meansCancelled($0) })
  }

  @Test func afterACancellationAnErrorThatMeansCancelledIsNoFailure() async {
    for error in Self.cancellations {
      let operation = StoppedOperation(reporting: error)
      queue.addOperation(operation)
      await operation.begun.opened()
      operation.cancel()
      await #expect(throws: CancellationError.self) { try await operation.completed() }
      #expect(operation.errors.isEmpty)
    }
  }

  @Test func withoutACancellationItIsOne() async {
    for error in Self.cancellations {
      let operation = AsyncBlockOperation { $0.finish(with: error) }
      await queue.run(settling: [operation])
      #expect(!operation.errors.isEmpty && !operation.isCancelled)
    }
  }

  @Test func anyOtherErrorIsKeptAfterTheReason() async {
    for error in Self.others {
      let operation = StoppedOperation(reporting: error)
      queue.addOperation(operation)
      await operation.begun.opened()
      operation.cancel(with: TestError("reason"))
      await operation.finished()
      #expect(operation.errors.count == 2 && operation.errors[0] as? TestError == TestError("reason"))
      let thrown = await #expect(throws: AggregateError.self) { try await operation.completed() }
      #expect(thrown?.isCancelled == true)
    }
  }

  @Test(arguments: [false, true])
  func theFirstReasonCounts(whileExecuting: Bool) async {
    for first in [nil, TestError("first")] {
      let operation = HeldOperation()
      if whileExecuting {
        queue.addOperation(operation)
        await operation.begun.opened()
      }
      if let first { operation.cancel(with: first) } else { operation.cancel() }
      operation.cancel(with: TestError("second"))
      operation.cancel()
      #expect(operation.errors as? [TestError] == first.map { [$0] } ?? [])
      operation.gate.open()
      if !whileExecuting { queue.addOperation(operation) }
      await operation.finished()
    }
  }

  @Test func ofReasonsThatCrossOneCounts() async {
    for _ in 0..<1000 {
      let operation = HeldOperation()
      queue.addOperation(operation)
      await operation.begun.opened()
      await onThreads(3) { thread in
        if thread == 2 { operation.cancel() } else { operation.cancel(with: TestError("\(thread)")) }
      }
      #expect(operation.errors.count <= 1)
      operation.gate.open()
      await operation.finished()
    }
  }

  @Test func aReasonThatOnlySaysCancelledIsNone() async {
    for error in Self.cancellations {
      let operation = HeldOperation()
      operation.cancel(with: error)
      await #expect(throws: CancellationError.self) { try await queue.run(operation) }
    }
  }

  @Test func aFinishBeforeTheStartDecidesThoughACancellationFollows() async throws {
    let operation = ResultOperation<Int> { 0 }
    operation.finish(returning: 7)
    operation.cancel(with: TestError("too late"))
    #expect(try await queue.run(operation) == 7)
    #expect(operation.errors.isEmpty && operation.isCancelled)
  }

  @Test func aValueThatIsMissingBecauseOfACancellationIsNoFailure() async {
    for _ in 0..<2000 {
      let operation = ResultOperation<Int>()
      let held = HeldOperation()
      held ==> operation
      await onThreads(2) { thread in if thread == 0 { operation.cancel() } else { operation.finish() } }
      held.gate.open()
      await queue.run(settling: [held, operation])
      if case .failure(let error)? = operation.result {
        #expect(error is CancellationError || OperationError.Code.outputMissing ~= error)
        #expect(operation.errors.isEmpty == (error is CancellationError))
      }
    }
  }

  @Test func ofSeveralFailuresTheErrorSaysWhetherTheGroupWasCancelled() async {
    for isCancelled in [false, true] {
      let failing = NoteOperation("a", journal, failing: TestError("a"))
      let held = HeldOperation()
      let group = GroupOperation([failing, held])
      queue.addOperation(group)
      await held.begun.opened()
      while group.failures.isEmpty { await Task.yield() }
      if isCancelled { group.cancel() }
      held.gate.open()
      let error = await #expect(throws: AggregateError.self) { try await group.completed() }
      #expect(error?.isCancelled == isCancelled && error?.failures.count == 1)
    }
    #expect(!AggregateError([OperationFailure(path: [], error: TestError("a"))]).isCancelled)
  }

  @Test func whatMembersReportBeforeTheyAreCancelledThemselvesIsNoFailureOfACancelledGroup() async {
    let member = HeldOperation()
    let group = GroupOperation([member])
    // As a session does that the group has invalidated.
    group.addObserver(OperationObserver(didCancel: { _ in member.finish(with: URLError(.cancelled)) }))
    queue.addOperation(group)
    await member.begun.opened()
    group.cancel()
    await #expect(throws: CancellationError.self) { try await group.completed() }
  }

  // MARK: The start

  @Test(arguments: [false, true])
  func oneThatAnObserverOfItsStartCancelsDoesNotExecute(inGroup: Bool) async {
    for _ in 0..<100 {
      let operation = AsyncBlockOperation { _ in Issue.record("executed") }
      operation.addObserver(OperationObserver(didStart: { $0.cancel() }))
      operation.addObserver(OperationObserver(didStart: { _ in Issue.record("the second observer was notified") }))
      await queue.run(settling: [inGroup ? GroupOperation([operation]) : operation])
      #expect(operation.isFinished && operation.isCancelled)
      await #expect(throws: CancellationError.self) { try await operation.completed() }
    }
  }

  @Test func anObserverOfTheStartKeepsEveryKindFromExecuting() async {
    let inner = AsyncBlockOperation { _ in Issue.record("executed") }
    let operations: [AsyncOperation] = [
      ResultOperation { Issue.record("executed") }, TaskOperation { Issue.record("executed") },
      RetryOperation(attempts: 2) { _ in ResultOperation { Issue.record("executed") } },
      DelayOperation(.seconds(1000)), GroupOperation([inner]),
    ]
    for operation in operations {
      operation.addObserver(OperationObserver(didStart: { $0.cancel(with: TestError("no")) }))
      operation.timeout = .seconds(1000)
    }
    await queue.run(settling: operations)
    #expect(operations.allSatisfy { $0.errors as? [TestError] == [TestError("no")] })
    #expect(inner.isFinished && inner.isCancelled && inner.errors.isEmpty)
  }

  @Test(arguments: [false, true])
  func theMembersOfAGroupThatAnObserverOfItsStartFinishesDoNotExecute(failing: Bool) async {
    for _ in 0..<100 {
      let members = [
        AsyncBlockOperation { _ in Issue.record("executed") }, AsyncBlockOperation { _ in Issue.record("executed") },
      ]
      let group = GroupOperation(members)
      group.addObserver(
        OperationObserver(didStart: { if failing { $0.finish(with: TestError("own")) } else { $0.finish() } })
      )
      await queue.run(settling: [group])
      #expect(members.allSatisfy { $0.isFinished && $0.errors.isEmpty })
      #expect(!group.isCancelled && group.errors as? [TestError] == (failing ? [TestError("own")] : []))
    }
  }

  // MARK: In the middle

  @Test func aConditionThatCancelsAndThrowsLeavesOneOutcome() async {
    for _ in 0..<200 {
      let finishes = Journal<Void>()
      let operation = AsyncBlockOperation { _ in Issue.record("executed") }
      operation.addObserver(OperationObserver(didFinish: { _ in finishes.write(()) }))
      operation.addCondition(
        OperationCondition(name: "c") {
          $0.cancel(with: TestError("reason"))
          throw TestError("unmet")
        }
      )
      await #expect(throws: TestError("reason")) { try await queue.run(operation) }
      #expect(finishes.count == 1 && operation.errors.count == 1)
    }
  }

  @Test func retryIfThatCancelsOrFinishesLeavesOneOutcome() async {
    for round in 0..<200 {
      let box = Journal<RetryOperation<Int>>()
      let finishes = Journal<Void>()
      let retry = RetryOperation<Int>(
        attempts: 3,
        retryIf: { _, _ in
          if round % 2 == 0 {
            box.entries[0].cancel(with: TestError("reason"))
          } else {
            box.entries[0].finish(returning: 7)
          }
          return true
        },
        { _ in ResultOperation { throw TestError("attempt") } }
      )
      box.write(retry)
      retry.addObserver(OperationObserver(didFinish: { _ in finishes.write(()) }))
      await queue.run(settling: [retry])
      #expect(finishes.count == 1 && retry.attemptErrors.count == 1)
      if round % 2 == 0 {
        #expect(retry.errors.first as? TestError == TestError("reason"))
      } else {
        #expect((try? retry.result?.get()) == 7)
      }
    }
  }

  @Test func aHookThatCancelsTheGroupLeavesOneOutcome() async {
    final class Cancelling: GroupOperation, @unchecked Sendable {
      override func operation(_ member: Operation, didFinishWith errors: [any Error]) -> [any Error] {
        cancel(with: TestError("hook"))
        return errors
      }
    }
    for _ in 0..<200 {
      let group = Cancelling([NoteOperation("a", journal, failing: TestError("a")), AsyncOperation()])
      let error = await #expect(throws: AggregateError.self) { try await queue.run(group) }
      #expect(error?.failures.first?.error as? TestError == TestError("hook") && error?.isCancelled == true)
      #expect(error?.errors(of: TestError.self).filter { $0 == TestError("hook") }.count == 1)
    }
  }

  // MARK: A crawler

  /// Accepts connections on the loopback interface, and never answers.
  private final class SilentServer: Sendable {
    private let descriptor: Int32
    let port: UInt16

    init() throws {
      #if canImport(Glibc)
      let kind = Int32(SOCK_STREAM.rawValue)
      #else
      let kind = SOCK_STREAM
      #endif
      let descriptor = socket(AF_INET, kind, 0)
      self.descriptor = descriptor
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
      var length = socklen_t(MemoryLayout<sockaddr_in>.size)
      let size = length
      let isListening = unsafe withUnsafeMutablePointer(to: &address) { pointer in
        unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
          unsafe bind(descriptor, address, size) == 0 && listen(descriptor, 64) == 0
            && getsockname(descriptor, address, &length) == 0
        }
      }
      guard isListening else { throw POSIXError(.EIO) }
      port = UInt16(bigEndian: address.sin_port)
    }

    deinit { close(descriptor) }
  }

  private final class Fetch: AsyncOperation, @unchecked Sendable {
    let begun = Gate()
    private let task = Locked<URLSessionDataTask?>(nil)
    private let url: URL

    init(_ url: URL) {
      self.url = url
      super.init()
    }

    override func execute() {
      let task = URLSession.shared.dataTask(with: url) { [self] _, _, error in
        if let error { return finish(with: error) }
        finish()
      }
      self.task.withLock { $0 = task }
      task.resume()
      begun.open()
      if isCancelled { task.cancel() }
    }

    override func didCancel() { task.withLock { $0 }?.cancel() }
  }

  @Test func aCrawlerThatIsCancelledHasNoFailures() async throws {
    let server = try SilentServer()
    let url = try #require(URL(string: "http://127.0.0.1:\(server.port)/"))
    for _ in 0..<20 {
      let pages = (0..<4).map { _ in Fetch(url) }
      let crawl = GroupOperation(pages).named("Crawl")
      let run = Task { try await queue.run(crawl) }
      for page in pages { await page.begun.opened() }
      run.cancel()
      await #expect(throws: CancellationError.self) { try await run.value }
      #expect(crawl.failures.isEmpty && pages.allSatisfy { $0.errors.isEmpty && $0.isCancelled })
    }
  }
}
