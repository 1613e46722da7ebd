import Foundation
import Operations
import OperationsTestSupport
import Soak
import Testing

@Suite(.timeLimit(.minutes(5)))
struct StopOnFailureTests {
  private let queue = OperationQueue()
  private let journal = Journal<String>()

  private func group(_ operations: [Operation], limit: Int = -1) -> GroupOperation {
    let group = GroupOperation(operations).named("make")
    group.errorPolicy = .stopOnFailure
    group.maxConcurrentOperationCount = limit
    return group
  }

  /// Runs a group, and lets a member fail when it executes and other gates are open.
  private func fail(_ bad: HeldOperation, in group: GroupOperation, after others: Gate...) async {
    queue.addOperation(group)
    for gate in [bad.begun] + others { await gate.opened() }
    bad.finish(with: TestError("bad"))
  }

  /// Fails on another thread, so that a runner could take the next member.
  private func failing(_ name: String) -> AsyncBlockOperation {
    AsyncBlockOperation { operation in
      DispatchQueue.global().async { operation.finish(with: TestError(name)) }
    }.named(name)
  }

  @Test(arguments: [GroupOperation.ErrorPolicy.stopOnFailure, .cancelOnFailure], [1, -1])
  func noMemberStartsAfterAFailure(_ policy: GroupOperation.ErrorPolicy, limit: Int) async {
    for _ in 0..<(isThorough ? 300 : 60) {
      let bad = failing("bad")
      let dependents = (0..<4).map { NoteOperation("dependent \($0)", journal).waits(for: bad) }
      let independent = limit == 1 ? (0..<20).map { NoteOperation("\($0)", journal) } : []
      let group = group([bad] + dependents + independent, limit: limit)
      group.errorPolicy = policy
      let error = await #expect(throws: AggregateError.self) { try await queue.run(group) }
      #expect(error?.failures.map(\.path) == [["make", "bad"]] && error?.isCancelled == false)
      #expect((dependents + independent).allSatisfy { $0.isFinished && $0.isCancelled && $0.errors.isEmpty })
    }
    #expect(journal.entries.isEmpty)
  }

  @Test func thoseExecutingRunToTheirEndAndLaterOnesDoNotStart() async {
    let (bad, executing, inner) = (HeldOperation(), HeldOperation(), HeldOperation())
    let (after, late) = (NoteOperation("after", journal), NoteOperation("late", journal))
    let (never, plain) = (BlockOperation {}, plain("plain", journal))
    executing ==> after
    never ==> plain
    let nested = GroupOperation([inner, NoteOperation("inner next", journal).waits(for: inner)])
    let group = group([bad, executing, after, plain, nested])
    await fail(bad, in: group, after: executing.begun, inner.begun)
    for operation in [after, plain] { await operation.finished() }
    group.addOperation(late)
    await late.finished()
    #expect(!executing.isCancelled && !nested.isCancelled && !group.isFinished)
    executing.gate.open()
    inner.gate.open()
    await group.finished()
    #expect(executing.isSuccessful && nested.isSuccessful && !group.isCancelled && group.errors.count == 1)
    #expect(journal.entries == ["inner next"] && plain.isCancelled)
    #expect(late.isCancelled && late.errors.isEmpty && after.errors.isEmpty)
  }

  @Test func consumersOfTheFailedMemberHaveNoErrorOfTheirOwn() async {
    for _ in 0..<200 {
      let producer = ResultOperation<Int> { throw TestError("gone") }
      let consumer = producer.map { $0 + 1 }
      let error = await #expect(throws: AggregateError.self) { try await queue.run(group([producer, consumer])) }
      #expect(error?.failures.count == 1 && consumer.isCancelled && consumer.errors.isEmpty)
    }
  }

  @Test func oneWhoseConditionIsBeingEvaluatedHasNotStarted() async {
    let (asked, bad, conditional) = (Gate(), HeldOperation(), NoteOperation("conditional", journal))
    conditional.addCondition(
      OperationCondition(name: "c") { _ in
        asked.open()
        try await Task.sleep(for: .seconds(1000))
      }
    )
    let group = group([conditional, bad])
    await fail(bad, in: group, after: asked)
    await group.finished()
    #expect(conditional.isCancelled && conditional.errors.isEmpty && journal.entries.isEmpty)
  }

  @Test func aFailureThatTheHookDropsStopsNothing() async throws {
    final class Lenient: GroupOperation, @unchecked Sendable {
      override func operation(_ member: Operation, didFinishWith errors: [any Error]) -> [any Error] { [] }
    }
    let bad = failing("bad")
    let group = Lenient([bad, NoteOperation("next", journal).waits(for: bad)])
    group.errorPolicy = .stopOnFailure
    group.maxConcurrentOperationCount = 1
    try await queue.run(group)
    #expect(journal.entries == ["next"])
  }

  @Test func aStoppedGroupMayStillBeCancelled() async {
    let (bad, executing) = (HeldOperation(), HeldOperation())
    let group = group([bad, executing])
    await fail(bad, in: group, after: executing.begun)
    await poll { !group.failures.isEmpty }
    #expect(!executing.isCancelled)
    group.cancel()
    #expect(executing.isCancelled)
    executing.gate.open()
    await group.finished()
  }
}
