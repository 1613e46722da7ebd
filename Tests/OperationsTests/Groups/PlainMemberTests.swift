import Foundation
import OperationsTestSupport
import Soak
import Testing

@testable import Operations

/// A plain Foundation operation behaves as a member as it does in a stock queue.
@Suite(.timeLimit(.minutes(5)))
struct PlainMemberTests {
  /// A plain operation that says itself when it is ready.
  final class Willing: Operation, @unchecked Sendable {
    private let isWilling = Locked(false)
    private let journal: Journal<String>

    init(_ name: String, _ journal: Journal<String>) {
      self.journal = journal
      super.init()
      self.name = name
    }

    override var isReady: Bool { isWilling.withLock { $0 } && super.isReady }

    override func main() { journal.write(name ?? "") }

    func agree() {
      willChangeValue(for: \.isReady)
      isWilling.withLock { $0 = true }
      didChangeValue(for: \.isReady)
    }
  }

  private let queue = OperationQueue()
  private let journal = Journal<String>()

  private func begun(_ members: [Operation], limit: Int = -1) async -> GroupOperation {
    let group = GroupOperation(members).named("G")
    group.maxConcurrentOperationCount = limit
    await queue.begin(group)
    return group
  }

  @Test func plainMembersWaitForOperationsInsideAndOutsideOfAnyKind() async {
    let (inside, outside, outsidePlain) = (ClassicOperation(), HeldOperation(), ClassicOperation())
    let members = chain((0..<300).map { plain("\($0)", journal) })
    [inside, outside, outsidePlain] ==> members[0]
    let group = GroupOperation(members.shuffled() + [inside])
    await queue.add(group, until: inside.begun)
    OperationQueue().addOperations([outside, outsidePlain])
    await outside.begun.opened()
    await outsidePlain.begun.opened()
    for gate in [outside.gate, inside.gate, outsidePlain.gate] {
      #expect(!members[0].isReady && journal.entries.isEmpty)
      gate.open()
    }
    await group.finished()
    #expect(journal.entries == (0..<300).map(String.init) && group.operations.isEmpty)
  }

  @Test func aCancelledGroupFinishesPlainMembersToo() async {
    for _ in 0..<100 {
      let outside = ClassicOperation()
      do {
        let waiting = plain("waiting", journal)
        outside ==> waiting
        let group = GroupOperation([waiting, plain("ready", journal)])
        group.cancel()
        await queue.run(settling: [group])
        #expect(waiting.isFinished)
      }
      // Foundation uses its pointer to the member at this moment. There is no other reference left.
      OperationQueue().addOperation(outside)
      await outside.finished(opening: outside.gate)
    }
    #expect(journal.entries.isEmpty)
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
    group.isSuspended = false
    await group.finished()
  }

  @Test func cancelledThroughItsGroupWhileItIsReady_needsNoSlot() async {
    let (held, member) = (HeldOperation(), plain("member", journal))
    let group = await begun([held, member], limit: 1)
    await held.begun.opened()
    group.cancelOperations(named: "member")
    await member.finished()
    #expect(held.isExecuting && journal.entries.isEmpty)
    await group.finished(opening: held.gate)
  }

  @Test func cancelledByItself_isNoticedWhenItWouldStart() async {
    let (held, dependency, member) = (HeldOperation(), HeldOperation(), plain("member", journal))
    let dependent = NoteOperation("dependent", journal)
    dependency ==> member ==> dependent
    let group = await begun([held, dependency, member, dependent])
    member.cancel()
    await dependency.finished(opening: dependency.gate)
    await dependent.finished()
    #expect(member.isFinished && journal.entries == ["dependent"])
    await group.finished(opening: held.gate)
  }

  /// Calls a closure when it is cancelled.
  private final class CancelProbe: Operation, @unchecked Sendable {
    let probe = Locked<(@Sendable () -> Void)?>(nil)

    override func cancel() {
      probe.withLock { $0.take() }?()
      super.cancel()
    }
  }

  @Test func cancellingWaitingMembersTwiceAtOnce_countsEachOnce() async {
    let (member, count) = (CancelProbe(), Locked(0))
    let group = GroupOperation([member])
    member.probe.withLock { $0 = { [unowned group] in count.withLock { $0 += group.cancelWaitingOperations() } } }
    #expect(group.cancelWaitingOperations() == 1)
    #expect(count.withLock { $0 } == 0)
    await queue.run(settling: [group])
  }

  @Test(arguments: [GroupOperation.ErrorPolicy.stopOnFailure, .cancelOnFailure, .cancelDependents])
  func dependentOnAFailedMember_neverExecutes(under policy: GroupOperation.ErrorPolicy) async {
    await onThreads(4) { thread in
      // The first two threads keep the system busy.
      let (queue, journal) = (OperationQueue(), Journal<String>())
      for _ in 0..<(isThorough ? 3_000 : 100) {
        let failing = NoteOperation("failing", Journal(), failing: TestError("failed"))
        let group = GroupOperation([failing, failing ==> plain("dependent", journal)])
        group.errorPolicy = policy
        queue.addOperations([group], waitUntilFinished: true)
      }
      #expect(journal.entries.isEmpty, "thread \(thread)")
    }
  }

  // MARK: No slot before it is ready

  /// The member waits for its turn, or for another operation.
  @Test(arguments: [false, true], [false, true])
  func aDependencyAddedToAMember_isWaitedForWithoutASlot(waitsForAnother: Bool, isPlain: Bool) async {
    let (held, added, late) = (HeldOperation(), HeldOperation(), NoteOperation("late", journal))
    let member = isPlain ? plain("member", journal) : NoteOperation("member", journal)
    if waitsForAnother { held ==> member }
    let group = await begun([held, member], limit: 1)
    await held.begun.opened()
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

  @Test(arguments: [false, true])
  func overriddenReadiness_isLeftToFoundationOnceTheDependenciesHaveFinished(isCancelled: Bool) async {
    let (held, member) = (HeldOperation(), Willing("member", journal))
    held ==> member
    let group = await begun([member, held], limit: 2)
    await held.finished(opening: held.gate)
    if isCancelled { group.cancelOperations(named: "member") }
    #expect(member.isCancelled == isCancelled && !member.isFinished)
    member.agree()
    await group.finished()
    #expect(member.isFinished && journal.entries == (isCancelled ? [] : ["member"]))
  }

  @Test func theLimitHoldsForThoseThatWaited() async {
    let outside = AsyncOperation()
    let members = (0..<40).map { _ in
      BlockOperation { for text in ["begin", "end"] { journal.write(text) } }
    }
    [outside] ==> members
    let group = await begun(members, limit: 1)
    queue.addOperation(outside)
    await group.finished()
    #expect(journal.entries == (0..<40).flatMap { _ in ["begin", "end"] })
  }

  // MARK: Not while the group is suspended

  private func giveFoundationEveryOpportunity() async {
    let other = OperationQueue()
    for _ in 0..<20 { try? await other.run(GroupOperation([plain("x", Journal()), AsyncOperation()])) }
  }

  @Test func itDoesNotStartWhileTheGroupIsSuspended() async {
    let (held, willing, waited) = (HeldOperation(), Willing("willing", journal), plain("waited", journal))
    held ==> waited
    let group = await begun([held], limit: 1)
    await held.begun.opened()
    group.isSuspended = true
    group.addOperations([waited, plain("was ready", journal), willing])
    await held.finished(opening: held.gate)
    willing.agree()
    await giveFoundationEveryOpportunity()
    #expect(journal.entries.isEmpty)
    group.isSuspended = false
    await group.finished()
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
      var members: [Operation] = []
      for _ in 0..<200 {
        let (a, b) = (BlockOperation {}, BlockOperation {})
        a ==> b
        a.addDependency(b)
        members += [a, BlockOperation {}, b]
      }
      let (group, pairs) = (GroupOperation(members), members)
      await onThreads(2) { [queue] thread in
        if thread == 0 { return queue.addOperation(group) }
        for index in pairs.indices where index % 3 != 1 { pairs[index].cancel() }
      }
      await group.finished()
    }
  }

  // MARK: What shows

  @Test func theReportNamesWhatItWaitsFor() async {
    let (never, member) = (AsyncOperation().named("never"), plain("member", journal))
    never ==> member
    let willing = Willing("willing", journal)
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
