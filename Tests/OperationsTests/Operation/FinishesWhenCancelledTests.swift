import Foundation
import Operations
import OperationsTestSupport
import Soak
import Testing

@Suite(.timeLimit(.minutes(5)))
struct FinishesWhenCancelledTests {
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

  private let journal = Journal<String>()

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

  @Test func asAMember_itFreesItsSlotAndItsLateErrorIsIgnored() async {
    let (held, next) = (HeldOperation(), NoteOperation("next", journal))
    held.finishesWhenCancelled = true
    let group = GroupOperation([held, next], maxConcurrentOperationCount: 1)
    await OperationQueue().add(group, until: held.begun)
    held.cancel()
    await group.finished()
    held.finish(with: TestError("late"))
    #expect(journal.entries == ["next"] && group.errors.isEmpty)
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
