import Foundation
import Operations
import OperationsTestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct CancelDependentsTests: NotingSuite {
  private let queue = OperationQueue()
  let journal = Journal<String>()

  private func group(_ members: [Operation]) -> GroupOperation {
    GroupOperation(members, errorPolicy: .cancelDependents)
  }

  enum End: CaseIterable, Sendable { case failure, cancellation, cancellationBeforeItsStart }

  @Test(arguments: End.allCases)
  func dependentsOfAMember_areCancelledAtOnce(_ end: End) async {
    let (first, held, other) = (HeldOperation(), HeldOperation(), note("other"))
    let (direct, indirect, outside) = (note("direct"), note("indirect"), note("outside"))
    first ==> direct ==> indirect ==> outside
    held ==> [direct, other]
    let group = group([indirect, direct, first, held, other])
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
    let group = group(chain(operations))
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
    let group = await queue.add(group([first, held]), until: held.begun)
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
    let group = await queue.add(group([first, held, other]), until: held.begun)
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
    let group = group([inner, dependent, last, sibling])
    await queue.run(settling: [group])
    #expect(Set(journal.entries) == ["inner", "sibling"] && dependent.isCancelled && last.isCancelled)
    #expect(group.errors.count == 1)
  }
}
