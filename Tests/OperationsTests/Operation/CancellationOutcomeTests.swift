import Foundation
import Operations
import OperationsTestSupport
import Soak
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

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

  @Test func afterACancellationAnErrorThatMeansCancelledIsNoFailureAndNoReason() async {
    for error in Self.cancellations {
      let (operation, other) = (StoppedOperation(reporting: error), unexecuted())
      await queue.add(operation, until: operation.begun)
      operation.cancel()
      other.cancel(with: error)
      await #expect(throws: CancellationError.self) { try await operation.completed() }
      await #expect(throws: CancellationError.self) { try await queue.run(other) }
      #expect(operation.errors.isEmpty)
    }
  }

  @Test func besideAnotherError_oneThatMeansCancelledIsAFailureUnlessTheOperationWasCancelled() async {
    for errors: [any Error] in Self.cancellations.map({ [$0, TestError("other")] }) {
      let operation = AsyncBlockOperation { $0.finish(withErrors: errors) }.named("two")
      let thrown = await #expect(throws: AggregateError.self) { try await queue.run(operation) }
      #expect(thrown?.failures.last?.path == ["two"] && thrown?.errors(of: TestError.self) == [TestError("other")])
      #expect(operation.errors.count >= 2 && !operation.isCancelled && thrown?.isCancelled == false)
      let cancelled = AsyncBlockOperation { operation in
        operation.cancel()
        operation.finish(withErrors: errors)
      }
      await #expect(throws: TestError("other")) { try await queue.run(cancelled) }
    }
  }

  @Test func anyOtherErrorIsKeptAfterTheReason() async {
    for error in Self.others {
      let operation = StoppedOperation(reporting: error)
      await queue.add(operation, until: operation.begun)
      operation.cancel(with: TestError("reason"))
      await operation.finished()
      #expect(operation.errors.count == 2 && operation.errors.first as? TestError == TestError("reason"))
      let thrown = await #expect(throws: AggregateError.self) { try await operation.completed() }
      #expect(thrown?.isCancelled == true)
    }
  }

  @Test func aFinishBeforeTheStartDecidesThoughACancellationFollows() async throws {
    let operation = ResultOperation<Int>()
    operation.finish(returning: 7)
    operation.cancel(with: TestError("too late"))
    #expect(try await queue.run(operation) == 7)
    #expect(operation.errors.isEmpty && operation.isCancelled)
  }

  @Test func aValueThatIsMissingBecauseOfACancellationIsNoFailure() async {
    for _ in 0..<2000 {
      let (operation, held) = (ResultOperation<Int>(), HeldOperation())
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

  @Test func whatMembersReportBeforeTheyAreCancelledThemselvesIsNoFailureOfACancelledGroup() async {
    let member = HeldOperation()
    let group = GroupOperation([member])
    // As a session does that the group has invalidated.
    group.addObserver(didCancel: { _ in member.finish(with: URLError(.cancelled)) })
    await queue.add(group, until: member.begun)
    group.cancel()
    await #expect(throws: CancellationError.self) { try await group.completed() }
  }

  private enum End: CaseIterable { case success, failure, cancellation, timeout }

  @Test(arguments: End.allCases, [false, true])
  private func anObserverOfTheStartKeepsEveryKindFromExecuting(_ end: End, inGroup: Bool) async {
    let inner = unexecuted()
    let operations: [AsyncOperation] = [
      unexecuted(), ResultOperation<Void> { Issue.record("executed") },
      TaskOperation<Void> { Issue.record("executed") }, DelayOperation(.seconds(1000)), GroupOperation([inner]),
      RetryOperation(attempts: 2) { _ in ResultOperation<Void> { Issue.record("executed") } },
    ]
    for operation in operations {
      let clock = ManualClock()
      (operation.clock, operation.timeout) = (clock, .seconds(1000))
      operation.addObserver(didStart: { operation in
        switch end {
        case .success: operation.finish()
        case .failure: operation.finish(with: TestError("no"))
        case .cancellation: operation.cancel(with: TestError("no"))
        case .timeout:
          operation.timeout = .seconds(1)
          clock.advance(by: .seconds(1))
        }
      })
      operation.addObserver(didStart: { _ in Issue.record("the second observer was notified") })
    }
    await queue.run(settling: inGroup ? [GroupOperation(operations)] : operations)
    let expected: [String] = end == .success ? [] : end == .timeout ? ["timedOut"] : ["no"]
    for operation in operations {
      let errors = operation.errors.map { ($0 as? OperationError)?.code.description ?? "\($0)" }
      #expect(errors == expected && operation.isCancelled == (end == .cancellation || end == .timeout))
    }
    await inner.finished()
    #expect(inner.isCancelled && inner.errors.isEmpty)
  }

  @Test(arguments: [false, true])
  func retryIfThatCancelsOrFinishesLeavesOneOutcome(cancels: Bool) async {
    let box = Journal<RetryOperation<Int>>()
    let retry = RetryOperation<Int>(
      attempts: 3,
      retryIf: { _, _ in
        if cancels { box.entries[0].cancel(with: TestError("reason")) } else { box.entries[0].finish(returning: 7) }
        return true
      },
      { _ in ResultOperation { throw TestError("attempt") } }
    )
    box.write(retry)
    await queue.run(settling: [retry])
    #expect(retry.attemptErrors.count == 1)
    #expect(retry.errors.first as? TestError == (cancels ? TestError("reason") : nil))
    #expect(cancels || (try? retry.result?.get()) == 7)
  }

  @Test func aHookThatCancelsTheGroupLeavesOneOutcome() async {
    final class Cancelling: GroupOperation, @unchecked Sendable {
      override func operation(_ member: Operation, didFinishWith errors: [any Error]) -> [any Error] {
        cancel(with: TestError("hook"))
        return errors
      }
    }
    for _ in 0..<200 {
      let group = Cancelling([NoteOperation("a", Journal(), failing: TestError("a")), AsyncOperation()])
      let error = await #expect(throws: AggregateError.self) { try await queue.run(group) }
      #expect(error?.errors(of: TestError.self).first == TestError("hook") && error?.isCancelled == true)
      #expect(error?.errors(of: TestError.self).count { $0 == TestError("hook") } == 1)
    }
  }

  // MARK: finishesWhenCancelled

  enum Kind: CaseIterable, Sendable {
    case block, task, result, retry, group

    /// Returns an operation whose work does not end before the gate is open, even if it is cancelled.
    func make(_ begun: Gate, _ end: Gate) -> AsyncOperation {
      let block = AsyncBlockOperation { operation in
        begun.open()
        end.whenOpen { operation.finish(with: TestError("late")) }
      }
      let work = stubbornWork(asTask: self != .result, begun, until: end) { () -> Void in throw TestError("late") }
      return switch self {
      case .block: block
      case .task, .result: work
      case .retry: RetryOperation(attempts: 3) { _ in work }
      case .group: GroupOperation([block])
      }
    }
  }

  @Test(arguments: Kind.allCases, [nil, TestError("reason")])
  func cancel_finishesItAndFreesItsSlot(_ kind: Kind, reason: TestError?) async {
    let (begun, end, queue) = (Gate(), Gate(), OperationQueue.limited(to: 1))
    let (operation, next) = (kind.make(begun, end), NoteOperation("next", journal))
    operation.finishesWhenCancelled = true
    let run = immediately { try await queue.run(operation) }
    await begun.opened()
    queue.addOperation(next)
    if let reason { operation.cancel(with: reason) } else { operation.cancel() }
    #expect(operation.isFinished && operation.isCancelled)
    await next.finished()
    let error = await #expect(throws: (any Error).self) { try await run.value }
    if let reason {
      #expect((error as? AggregateError)?.primary.error as? TestError ?? error as? TestError == reason)
    } else {
      #expect(error is CancellationError)
    }
    end.open()
    operation.finish(with: TestError("later"))
    #expect(operation.errors as? [TestError] == (reason.map { [$0] } ?? []))
  }

  /// The token of the work is released after its late call of `finish`.
  @Test(arguments: [nil, TestError("late")])
  func theLateResultOfATaskAndOfAnAttempt_isIgnored(error: TestError?) async {
    let (live, end) = (LiveCount(), Gate())
    @Sendable func late(_ begun: Gate) -> ResultOperation<Int> {
      let token = LiveCount.Token(live)
      return stubbornWork(asTask: true, begun, until: end) {
        try withExtendedLifetime(token) { if let error { throw error } else { 1 } }
      }
    }
    let begun = [Gate(), Gate()]
    let retry = RetryOperation(attempts: 3) { [journal] attempt in
      journal.write("attempt \(attempt)")
      return late(begun[1])
    }
    let operations: [ResultOperation<Int>] = [late(begun[0]), retry]
    for operation in operations { operation.finishesWhenCancelled = true }
    OperationQueue().addOperations(operations)
    for gate in begun { await gate.opened() }
    for operation in operations { operation.cancel() }
    end.open()
    await live.none()
    for operation in operations {
      #expect(throws: CancellationError.self) { _ = try operation.result?.get() }
      #expect(operation.errors.isEmpty && operation.result != nil)
    }
    #expect(journal.entries == ["attempt 1"] && retry.attemptErrors.isEmpty)
  }
}
