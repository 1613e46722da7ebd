import Foundation
import OperationsTestSupport
import Soak
import Testing

@testable import Operations

@Suite(.timeLimit(.minutes(5)))
struct GroupErrorTests: NotingSuite {
  private let queue = OperationQueue()
  let journal = Journal<String>()

  @Test func cancelOnFailureCancelsTheOthersAndWhatComesLater() async {
    let (held, bad, never) = (HeldOperation(), failing("a"), note("never"))
    bad ==> never
    let group = await queue.add(GroupOperation([held, never], errorPolicy: .cancelOnFailure), until: held.begun)
    group.addOperation(bad)
    await poll { held.isCancelled }
    #expect(!group.isFinished, "a member is still executing")
    let late = note("late")
    group.addOperation(late)
    await group.finished(opening: held.gate)
    #expect(journal.entries == ["a"])
    #expect(never.isCancelled && late.isCancelled && late.isFinished)
    #expect(group.errors.count == 1 && !group.isCancelled)
  }

  @Test func theHookTranslatesAndDrops() async {
    final class Translating: GroupOperation, @unchecked Sendable {
      override func operation(_ member: Operation, didFinishWith errors: [any Error]) -> [any Error] {
        switch member.name {
        case "translated": errors.map { _ in TestError("translated") }
        case "dropped": []
        case "added": [TestError("added")]
        case "nested": errors.filter { "\($0)" != "error of a" }
        default: errors
        }
      }
    }
    let nested = GroupOperation("nested") { failing("a") ==> failing("b") }
    let members = [failing("translated"), failing("dropped"), note("added"), nested]
    let group = Translating(chain(members)).named("G")
    await queue.run(settling: [group])
    let failures = ["G › translated: translated", "G › added: added", "G › nested › b: error of b"]
    #expect(group.failures.map { "\($0)" } == failures && !group.isSuccessful && !group.isCancelled)
    #expect(group.errors as? [TestError] == ["translated", "added", "error of b"].map(TestError.init))
  }

  @Test func finishedDuringACallOfTheHook_returnsAndTheHookIsCalledAfterwards() async {
    final class Waiting: GroupOperation, @unchecked Sendable {
      let (calls, otherHasFinished) = (Journal<String>(), DispatchSemaphore(value: 0))

      override func operation(_ member: Operation, didFinishWith errors: [any Error]) -> [any Error] {
        calls.write("begin \(member.name ?? "")")
        // Another member's `finish` returns, on its own thread, while this call lasts.
        if member.name == "first" { otherHasFinished.wait() }
        calls.write("end \(member.name ?? "")")
        return errors
      }
    }
    let (first, second) = (HeldOperation().named("first"), HeldOperation().named("second"))
    let group = await queue.add(Waiting([first, second]), until: first.begun)
    await second.begun.opened()
    DispatchQueue.global().async { first.gate.open() }
    await group.calls.reaches(1)
    second.gate.open()
    group.otherHasFinished.signal()
    await group.finished()
    #expect(group.calls.entries == ["begin first", "end first", "begin second", "end second"])
  }

  /// Holds its line when the first member has finished, and repeats it before what it has let in.
  private final class Holding: GroupOperation, @unchecked Sendable {
    var again = Operation()
    private(set) var mayOthersStart = false

    override func operation(_ member: Operation, didFinishWith errors: [any Error]) -> [any Error] {
      guard member.name == "first" else { return errors }
      mayOthersStart = engine.state.withLock { $0.schedule.mayHandOut } || operations.contains { $0.isExecuting }
      isSuspended = true
      addOperation(again)
      return []
    }
  }

  @Test(arguments: [true, false])
  func whatAMemberLetsIn_startsAfterTheHookHasReturned(fails: Bool) async {
    let (domain, first) = (ExclusivityDomain(), fails ? failing("first") : note("first"))
    let (keyed, next) = (note("keyed"), note("next"))
    let (again, dependent) = (note("again"), note("dependent").waits(for: first))
    for operation in [first, keyed, again] { operation.exclusive("key", in: domain) }
    again.queuePriority = .veryHigh
    let group = Holding([first, keyed, next, dependent], maxConcurrentOperationCount: 1)
    group.again = again
    queue.addOperation(group)
    await first.finished()
    #expect(!group.mayOthersStart && journal.entries == ["first"])
    await group.ended()
    #expect(journal.entries == ["first", "again", "keyed", "next", "dependent"])
  }

  // MARK: stopOnFailure

  private func stopping(
    _ operations: [Operation],
    _ policy: GroupOperation.ErrorPolicy = .stopOnFailure,
    limit: Int = -1
  ) -> GroupOperation {
    GroupOperation(operations, maxConcurrentOperationCount: limit, errorPolicy: policy).named("make")
  }

  @Test(arguments: [GroupOperation.ErrorPolicy.stopOnFailure, .cancelOnFailure], [1, -1])
  func noMemberStartsAfterAFailure(_ policy: GroupOperation.ErrorPolicy, limit: Int) async {
    for _ in 0..<(isThorough ? 300 : 60) {
      // On another thread, so that a runner could take the next member.
      let bad = AsyncBlockOperation { operation in
        DispatchQueue.global().async { operation.finish(with: TestError("bad")) }
      }.named("bad")
      let dependents = (0..<4).map { note("dependent \($0)").waits(for: bad) }
      let independent = limit == 1 ? (0..<20).map { note("\($0)") } : []
      let group = stopping([bad] + dependents + independent, policy, limit: limit)
      let error = await #expect(throws: AggregateError.self) { try await queue.run(group) }
      #expect(error?.failures.map(\.path) == [["make", "bad"]] && error?.isCancelled == false)
      #expect((dependents + independent).allSatisfy { $0.isFinished && $0.isCancelled && $0.errors.isEmpty })
    }
    #expect(journal.entries.isEmpty)
  }

  /// One whose condition is being evaluated has not started, and one that backs off does not execute.
  @Test func thoseExecutingRunToTheirEndAndLaterOnesDoNotStart() async {
    let (bad, executing, inner) = (HeldOperation(), HeldOperation(), HeldOperation())
    let (after, late, conditional) = (note("after"), note("late"), note("conditional"))
    let (asked, clock) = (Gate(), ManualClock())
    let waiting = BlockOperation {} ==> plain("waiting", journal)
    executing ==> after
    conditional.addCondition("c") { _ in
      asked.open()
      await Gate().opened()
      try Task.checkCancellation()
    }
    let repetition = RepeatOperation(pausing: .constant(.seconds(60))) { _ in note("run") }
    let nested = GroupOperation([inner, note("inner next").waits(for: inner)])
    let group = stopping([bad, executing, after, waiting, nested, conditional, repetition])
    group.clock = clock
    queue.addOperation(group)
    await clock.waitForSleepers()
    for gate in [bad.begun, executing.begun, inner.begun, asked] { await gate.opened() }
    bad.finish(with: TestError("bad"))
    let stopped: [Operation] = [after, waiting, conditional, repetition]
    for operation in stopped { await operation.finished() }
    group.addOperation(late)
    await late.finished()
    #expect(!executing.isCancelled && !nested.isCancelled && !group.isFinished)
    executing.gate.open()
    await group.finished(opening: inner.gate)
    #expect(executing.isSuccessful && nested.isSuccessful && !group.isCancelled && group.errors.count == 1)
    #expect(journal.entries == ["run", "inner next"] && (stopped + [late]).allSatisfy(\.isCancelled))
    #expect([late, after, conditional].allSatisfy { $0.errors.isEmpty })
  }

  // MARK: cancelDependents

  enum End: CaseIterable, Sendable { case failure, cancellation, cancellationBeforeItsStart }

  @Test(arguments: End.allCases)
  func dependentsOfAMember_areCancelledAtOnce(_ end: End) async {
    let (first, held, other) = (HeldOperation(), HeldOperation(), note("other"))
    let (direct, indirect, outside) = (note("direct"), note("indirect"), note("outside"))
    first ==> direct ==> indirect ==> outside
    held ==> [direct, other]
    let group = GroupOperation([indirect, direct, first, held, other], errorPolicy: .cancelDependents)
    if end == .cancellationBeforeItsStart { held ==> first }
    queue.addOperations([group, outside])
    await held.begun.opened()
    if end != .cancellationBeforeItsStart { await first.begun.opened() }
    if end != .failure { first.cancel() }
    first.finish(withErrors: end == .failure ? [TestError("failed")] : [])
    for operation in [direct, indirect, outside] { await operation.finished() }
    #expect(held.isExecuting && journal.entries == ["outside"])
    await group.finished(opening: held.gate)
    #expect(journal.entries == ["outside", "other"] && [direct, indirect].allSatisfy { $0.isCancelled })
    #expect([direct, indirect, outside, other].allSatisfy { $0.errors.isEmpty })
    #expect(!other.isCancelled && !outside.isCancelled && !held.isCancelled && !group.isCancelled)
    #expect(group.errors as? [TestError] == (end == .failure ? [TestError("failed")] : []))
  }

  @Test func aChainOfTenThousandIsCancelled() async throws {
    let operations = [failing("first")] + (1..<10_000).map { note("\($0)") }
    let group = GroupOperation(chain(operations), errorPolicy: .cancelDependents)
    try await onSmallStack { [queue] in queue.addOperation(group) }
    await group.finished()
    #expect(journal.entries == ["first"] && operations.dropFirst().allSatisfy { $0.isCancelled && $0.isFinished })
    #expect(group.errors.count == 1)
  }

  @Test(arguments: [true, false], [true, false])
  func dependentsThatAreAddedAfterTheFailure_areCancelled(isDependencyOlder: Bool, arePlain: Bool) async {
    let (first, held) = (failing("first"), HeldOperation())
    let (late, indirect): (Operation, Operation) =
      arePlain ? (plain("late", journal), plain("indirect", journal)) : (note("late"), note("indirect"))
    if isDependencyOlder { first ==> late }
    late ==> indirect
    let group = await queue.add(GroupOperation([first, held], errorPolicy: .cancelDependents), until: held.begun)
    await first.finished()
    await poll { group.operations == [held] }
    if !isDependencyOlder { first ==> late }
    group.addOperations([indirect, late])
    for operation in [late, indirect] { await operation.finished() }
    await group.finished(opening: held.gate)
    #expect(late.isCancelled && indirect.isCancelled && journal.entries == ["first"] && group.errors.count == 1)
  }

  @Test func aDependencyThatAMemberGainsAfterTheFailure_cancelsIt() async {
    let (first, held, other) = (failing("first"), HeldOperation(), note("other"))
    held ==> other
    let group = GroupOperation([first, held, other], errorPolicy: .cancelDependents)
    await queue.add(group, until: held.begun)
    await first.finished()
    await poll { group.operations.count == 2 }
    first ==> other
    await other.finished()
    await group.finished(opening: held.gate)
    #expect(other.isCancelled && journal.entries == ["first"])
  }

  /// Under every policy, only the errors that the group keeps count.
  @Test(arguments: [GroupOperation.ErrorPolicy.cancelDependents, .stopOnFailure, .cancelOnFailure], [false, true])
  func dependentsOfAMemberWhoseErrorTheGroupDrops_run(_ policy: GroupOperation.ErrorPolicy, isCancelled: Bool) async {
    final class Dropping: GroupOperation, @unchecked Sendable {
      override func operation(_ member: Operation, didFinishWith errors: [any Error]) -> [any Error] { [] }
    }
    let (first, next) = (HeldOperation(), note("next"))
    first ==> next
    let group = await queue.add(Dropping([first, next], errorPolicy: policy), until: first.begun)
    if isCancelled { first.cancel() }
    first.finish(with: TestError("dropped"))
    await group.finished()
    #expect(next.isCancelled == (isCancelled && policy == .cancelDependents) && group.isSuccessful)
    #expect(journal.entries == (next.isCancelled ? [] : ["next"]))
  }

  @Test func nestedGroups_failAndAreCancelledAsWholes() async {
    let (inner, dependent) = (GroupOperation([failing("inner")]), GroupOperation([note("never")]))
    let (last, sibling) = (note("last"), note("sibling"))
    inner ==> dependent ==> last
    let group = GroupOperation([inner, dependent, last, sibling], errorPolicy: .cancelDependents)
    await queue.run(settling: [group])
    #expect(Set(journal.entries) == ["inner", "sibling"] && dependent.isCancelled && last.isCancelled)
    #expect(group.errors.count == 1)
  }
}
