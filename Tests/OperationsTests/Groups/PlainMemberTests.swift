import Foundation
import Operations
import OperationsTestSupport
import Testing

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

  /// A plain operation that a thread cancels while another one adds a dependency to it.
  final class Contended: Operation, @unchecked Sendable {
    private let isAdding = Locked<Void?>(nil)
    private let hasChecked = DispatchSemaphore(value: 0)
    private let delay: Duration

    init(delay: Duration) { self.delay = delay }

    /// Foundation records the answer when this returns.
    override var isReady: Bool {
      let isReady = super.isReady
      if isAdding.withLock({ $0.take() }) != nil {
        hasChecked.signal()
        while !isCancelled {}
        work(for: delay)
      }
      return isReady
    }

    func cancel(whileAdding dependency: Operation) async {
      let hasCancelled = Gate()
      // A thread of its own, because other tests may block those of the system.
      Thread.detachNewThread { [self] in
        hasChecked.wait()
        cancel()
        hasCancelled.open()
      }
      await onThreads(1) { [self] _ in
        isAdding.withLock { $0 = () }
        waits(for: dependency)
      }
      await hasCancelled.opened()
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
    member.cancel()
    await after.finished()
    #expect(member.isFinished && journal.entries == ["after"])
    await group.finished(opening: held.gate)
    #expect(group.isSuccessful)
  }

  @Test func cancelledWhileItGainsADependency_finishes() async {
    let (never, late) = (Operation(), Operation())
    for round in 0..<400 {
      let (member, held) = (Contended(delay: .nanoseconds(round * 50)), HeldOperation())
      never ==> member
      let group = await begun([member, held])
      await member.cancel(whileAdding: late)
      await member.finished()
      await group.finished(opening: held.gate)
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
  func oneThatIsNotReadyByItselfTakesNoSlot(hasWaited: Bool) async {
    let (held, member) = (HeldOperation(), Willing("member", journal))
    if hasWaited { held ==> member }
    let group = await begun([member, held], limit: 1)
    await held.finished(opening: held.gate)
    let late = NoteOperation("late", journal)
    group.addOperation(late)
    await late.finished()
    #expect(journal.entries == ["late"])
    member.agree()
    await group.finished()
    #expect(journal.entries == ["late", "member"])
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
    let (held, early, late) = (HeldOperation(), Willing("early", journal), Willing("late", journal))
    let waited = plain("waited", journal)
    held ==> waited
    // The turn of the first has come before the group is suspended.
    let group = await begun([early, held], limit: 1)
    await held.begun.opened()
    group.isSuspended = true
    group.addOperations([waited, plain("was ready", journal), late])
    await held.finished(opening: held.gate)
    for member in [early, late] { member.agree() }
    await giveFoundationEveryOpportunity()
    #expect(journal.entries.isEmpty)
    group.isSuspended = false
    await group.finished()
    #expect(Set(journal.entries) == ["early", "late", "waited", "was ready"])
  }

  // MARK: Cycles

  @Test func twoOnACycleAreFinishedWhenTheyAreCancelled() async {
    let (a, b, held) = (plain("a", journal), plain("b", journal), HeldOperation())
    AsyncOperation() ==> a ==> b
    let group = await begun([a, b, held])
    // Closed where the group cannot notice.
    a.addDependency(b)
    for operation in [a, b] { operation.cancel() }
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
    let report = group.stallReport()
    let causes = Dictionary(uniqueKeysWithValues: report.entries.map { ($0.operation, $0.cause) })
    #expect(causes["member"] == .notEnqueued && causes["willing"] == .notReady, "\(report)")
    #expect(!"\(report)".contains("slot") && !"\(report)".contains("about to start"), "\(report)")
    group.cancel()
    willing.agree()
    await group.finished()
  }

  @Test func theGateShowsWhileItWaitsAndIsGoneAfterwards() async {
    let (outside, member) = (AsyncOperation(), plain("member", journal))
    outside ==> member
    let group = await begun([member])
    await poll { member.dependencies.count == 2 }
    #expect(OperationGraph([group]).nodes.count == 3, "it is in no drawing")
    queue.addOperation(outside)
    await group.finished()
    #expect(member.dependencies.isEmpty)
  }
}
