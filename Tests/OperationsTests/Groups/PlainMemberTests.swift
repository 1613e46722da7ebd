import Foundation
import OperationsTestSupport
import Testing

@testable import Operations

/// A plain Foundation operation behaves as a member as it does in a stock queue.
@Suite(.timeLimit(.minutes(5)))
struct PlainMemberTests {
  /// A plain operation that is not ready until it agrees.
  final class Willing: BlockOperation, @unchecked Sendable {
    private let isWilling = Gate()

    override var isReady: Bool { isWilling.isOpen && super.isReady }

    func agree() {
      willChangeValue(for: \.isReady)
      isWilling.open()
      didChangeValue(for: \.isReady)
    }
  }

  private let queue = OperationQueue()
  private let journal = Journal<String>()

  private func begun(_ members: [Operation], limit: Int = -1, until gate: Gate? = nil) async -> GroupOperation {
    let group = GroupOperation(members, maxConcurrentOperationCount: limit).named("G")
    await queue.begin(group)
    await gate?.opened()
    return group
  }

  @Test func plainMembersWaitForOperationsInsideAndOutsideOfAnyKind() async {
    let (inside, outside, outsidePlain) = (ClassicOperation(), HeldOperation(), ClassicOperation())
    let members = chain((0..<300).map { plain("\($0)", journal) })
    [inside, outside, outsidePlain] ==> members[0]
    let group = GroupOperation(members.shuffled() + [inside])
    queue.addOperations([group, outside, outsidePlain])
    for gate in [inside.begun, outside.begun, outsidePlain.begun] { await gate.opened() }
    for gate in [outside.gate, inside.gate, outsidePlain.gate] {
      #expect(!members[0].isReady && journal.entries.isEmpty)
      gate.open()
    }
    await group.finished()
    #expect(journal.entries == (0..<300).map(String.init) && group.operations.isEmpty)
  }

  // MARK: Cancelled while it waits

  @Test(arguments: [false, true])
  func cancelledWhileItWaits_finishesAtOnceAndItsDependentsRun(isAddedLater: Bool) async {
    let (never, held) = (AsyncOperation(), HeldOperation())
    let (member, after) = (plain("member", journal), plain("after", journal))
    never ==> member ==> after
    let group = await begun(isAddedLater ? [held] : [after, member, held])
    if isAddedLater { group.addOperations([after, member]) }
    #expect(group.cancelOperations(named: "member") == 1 && member.isCancelled)
    await after.finished()
    #expect(member.isFinished && journal.entries == ["after"])
    await group.finished(opening: held.gate)
    #expect(group.isSuccessful)
  }

  @Test(arguments: [false, true])
  func cancelledThroughItsSuspendedGroup_finishesAtOnce(gainsDependency: Bool) async {
    let (never, member, other) = (AsyncOperation(), plain("member", journal), plain("other", journal))
    let group = GroupOperation([member, other])
    group.isSuspended = true
    if gainsDependency { never ==> member } else { group.cancelOperations(named: "member") }
    await queue.begin(group)
    if gainsDependency { group.cancelOperations(named: "member") }
    await member.finished()
    await poll { group.operations == [other] }
    #expect(journal.entries.isEmpty)
    await group.ended()
  }

  @Test func cancelledByItself_isNoticedWhenItWouldStart() async {
    let (dependency, member) = (HeldOperation(), plain("member", journal))
    let dependent = NoteOperation("dependent", journal)
    dependency ==> member ==> dependent
    let group = await begun([dependency, member, dependent])
    member.cancel()
    await group.finished(opening: dependency.gate)
    #expect(member.isFinished && journal.entries == ["dependent"])
  }

  @Test func cancelledByItselfBeforeTheGroupStarts_waitsForNothing() async {
    let (never, member) = (AsyncOperation(), plain("member", journal))
    never ==> member
    let group = GroupOperation([member])
    member.cancel()
    await queue.run(settling: [group])
    #expect(member.isFinished && journal.entries.isEmpty)
  }

  @Test func cancellingWaitingMembersTwiceAtOnce_countsEachOnce() async {
    final class CancelProbe: Operation, @unchecked Sendable {
      let probe = Locked<(@Sendable () -> Void)?>(nil)

      override func cancel() {
        probe.withLock { $0.take() }?()
        super.cancel()
      }
    }
    let (member, count) = (CancelProbe(), Locked(0))
    let group = GroupOperation([member])
    member.probe.withLock { $0 = { [unowned group] in count.withLock { $0 += group.cancelWaitingOperations() } } }
    #expect(group.cancelWaitingOperations() == 1)
    #expect(count.withLock { $0 } == 0)
    await queue.run(settling: [group])
  }

  // MARK: No slot before it is ready

  /// The member waits for its turn, or for another operation.
  @Test(arguments: [false, true], [false, true])
  func aDependencyAddedToAMember_isWaitedForWithoutASlot(waitsForAnother: Bool, isPlain: Bool) async {
    let (held, added, late) = (HeldOperation(), HeldOperation(), NoteOperation("late", journal))
    let member = isPlain ? plain("member", journal) : NoteOperation("member", journal)
    if waitsForAnother { held ==> member }
    let group = await begun([held, member], limit: 1, until: held.begun)
    group.addOperation(added)
    added ==> member
    held.gate.open()
    await added.begun.opened()
    group.maxConcurrentOperationCount = 2
    group.addOperation(late)
    await late.finished()
    #expect(journal.entries == ["late"])
    await group.finished(opening: added.gate)
    #expect(journal.entries == ["late", "member"])
  }

  @Test func aDependencyThatIsNoticedAtTheStart_isWaitedForWithoutASlot() async {
    let (held, member, late) = (HeldOperation(), plain("member", journal), NoteOperation("late", journal))
    let group = GroupOperation([member, late], maxConcurrentOperationCount: 1)
    group.isSuspended = true
    await queue.begin(group)
    member.addDependency(held)
    group.isSuspended = false
    await late.finished()
    queue.addOperation(held)
    await group.finished(opening: held.gate)
    #expect(journal.entries == ["late", "member"])
  }

  @Test(arguments: [false, true])
  func overriddenReadiness_isLeftToFoundationOnceTheDependenciesHaveFinished(isCancelled: Bool) async {
    let (held, member) = (HeldOperation(), Willing { journal.write("member") }.named("member"))
    held ==> member
    let group = await begun([member, held], limit: 2)
    await held.finished(opening: held.gate)
    if isCancelled { group.cancelOperations(named: "member") }
    #expect(member.isCancelled == isCancelled && !member.isFinished)
    member.agree()
    await group.finished()
    #expect(member.isFinished && journal.entries == (isCancelled ? [] : ["member"]))
  }

  @Test func itDoesNotStartWhileTheGroupIsSuspended() async throws {
    let (held, willing, waited) = (HeldOperation(), Willing { journal.write("willing") }, plain("waited", journal))
    held ==> waited
    let group = await begun([held], limit: 1, until: held.begun)
    group.isSuspended = true
    group.addOperations([waited, plain("was ready", journal), willing])
    await held.finished(opening: held.gate)
    willing.agree()
    // Gives Foundation every opportunity.
    for _ in 0..<20 { try await OperationQueue().run(GroupOperation([plain("x", Journal()), AsyncOperation()])) }
    #expect(journal.entries.isEmpty)
    await group.ended()
    #expect(Set(journal.entries) == ["willing", "waited", "was ready"])
  }

  // MARK: Cycles

  @Test func twoOnACycleAreFinishedWhenTheyAreCancelled() async {
    let (a, b, held) = (plain("a", journal), plain("b", journal), HeldOperation())
    // Both wait for an operation that never ends, because the end of "a" makes "b" ready before it is cancelled.
    AsyncOperation() ==> [a, b]
    a ==> b
    let group = await begun([a, b, held])
    // Closed where the group cannot notice.
    a.addDependency(b)
    for name in ["a", "b"] { group.cancelOperations(named: name) }
    for operation in [a, b] { await operation.finished() }
    group.cancel()
    await group.finished(opening: held.gate)
    #expect(journal.entries.isEmpty)
  }

  @Test func pairsOnCyclesAreCancelledWhileTheirGroupStarts() async {
    for _ in 0..<20 {
      let pairs = (0..<200).map { _ in [BlockOperation {}, BlockOperation {}] }
      for pair in pairs { pair[0] ==> pair[1] ==> pair[0] }
      let group = GroupOperation(pairs.flatMap { [$0[0], BlockOperation {}, $0[1]] })
      await onThreads(2) { [queue] thread in
        if thread == 0 { return queue.addOperation(group) }
        for operation in pairs.joined() { operation.cancel() }
      }
      await group.finished()
    }
  }

  // MARK: What shows

  @Test func theReportNamesWhatItWaitsFor() async {
    let (member, willing) = (plain("member", journal), Willing {}.named("willing"))
    AsyncOperation() ==> member
    let group = await begun([member, willing], limit: 1)
    await poll { willing.asMember?.isExecuting == true }
    let report = group.stallReport()
    let causes = Dictionary(uniqueKeysWithValues: report.entries.map { ($0.operation, $0.cause) })
    #expect(causes["member"] == .notEnqueued && causes["willing"] == .notReady, "\(report)")
    #expect(!"\(report)".contains("slot") && !"\(report)".contains("about to start"), "\(report)")
    group.cancel()
    willing.agree()
    await group.finished()
  }

  @Test func itShowsItsOwnDependenciesAndNoneAfterwards() async {
    let (outside, member) = (AsyncOperation(), plain("member", journal))
    outside ==> member
    let group = await begun([member])
    #expect(member.dependencies == [outside] && group.operations == [member])
    #expect(OperationGraph([group]).nodes.map(\.name) == ["G", "member", "async operation"])
    queue.addOperation(outside)
    await group.finished()
    #expect(member.dependencies.isEmpty)
  }
}
