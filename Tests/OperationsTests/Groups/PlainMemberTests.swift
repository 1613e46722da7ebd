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

  private let queue = OperationQueue()
  private let journal = Journal<String>()

  private func begun(_ members: [Operation], limit: Int = -1) async -> GroupOperation {
    let group = GroupOperation(members).named("G")
    group.maxConcurrentOperationCount = limit
    let began = Gate()
    group.addObserver(OperationObserver(didStart: { _ in began.open() }))
    await queue.add(group, until: began)
    return group
  }

  @Test func plainMembersOfAllKinds() async throws {
    let classic = ClassicOperation()
    let (a, b) = (plain("a", journal), plain("b", journal))
    classic ==> a ==> b ==> NoteOperation("outside", journal)
    let group = GroupOperation([classic, a, b, NoteOperation("other", journal)])
    await queue.add(group, until: classic.begun)
    #expect(!a.isReady)
    classic.gate.open()
    await group.finished()
    #expect(journal.entries.filter { $0 != "other" } == ["a", "b"])
    #expect(group.operations.isEmpty)
  }

  @Test func aPlainMemberWaitsForOperationsOutside() async {
    let (outside, outsidePlain, member) = (HeldOperation(), ClassicOperation(), plain("member", journal))
    [outside, outsidePlain] ==> member
    let group = await begun([member])
    OperationQueue().addOperations([outside, outsidePlain])
    await outside.begun.opened()
    await outsidePlain.begun.opened()
    outside.gate.open()
    outsidePlain.gate.open()
    await group.finished()
    #expect(journal.entries == ["member"])
  }

  @Test func manyPlainMembersInAChain() async throws {
    let members = (0..<300).map { plain("\($0)", journal) }
    for (first, second) in zip(members, members.dropFirst()) { first ==> second }
    try await queue.run(GroupOperation(members.shuffled()))
    #expect(journal.entries == (0..<300).map(String.init))
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
      outside.gate.open()
      await outside.finished()
    }
    #expect(journal.entries.isEmpty)
  }

  // MARK: Cancelled while it waits

  @Test(arguments: [false, true])
  func cancelledWhileItWaitsItFinishesAtOnce(isAddedLater: Bool) async {
    let never = AsyncOperation()
    let member = plain("member", journal)
    never ==> member
    let held = HeldOperation()
    let group = await begun(isAddedLater ? [held] : [member, held])
    if isAddedLater { group.addOperation(member) }
    member.cancel()
    await member.finished()
    held.gate.open()
    await group.finished()
    #expect(journal.entries.isEmpty && group.isSuccessful)
  }

  @Test func cancelledTheDependentsRun() async {
    let never = BlockOperation {}
    let (member, after) = (plain("member", journal), plain("after", journal))
    never ==> member ==> after
    let group = await begun([after, member])
    member.cancel()
    await group.finished()
    #expect(journal.entries == ["after"])
  }

  // MARK: No slot before it is ready

  @Test(arguments: [false, true])
  func aDependencyAddedWhileItWaitsForItsTurnOrForAnotherTakesNoSlot(waitsForAnother: Bool) async {
    let held = HeldOperation()
    let (member, other) = (plain("member", journal), NoteOperation("other", journal))
    if waitsForAnother { held ==> member }
    let group = await begun([held, member], limit: 1)
    await held.begun.opened()
    group.addOperation(other)
    other ==> member
    held.gate.open()
    await group.finished()
    #expect(journal.entries == ["other", "member"])
  }

  @Test(arguments: [false, true])
  func oneThatIsNotReadyByItselfTakesNoSlot(hasWaited: Bool) async {
    let (held, member) = (HeldOperation(), Willing("member", journal))
    if hasWaited { held ==> member }
    let group = await begun([member, held], limit: 1)
    held.gate.open()
    await held.finished()
    let late = NoteOperation("late", journal)
    group.addOperation(late)
    await late.finished()
    #expect(journal.entries == ["late"])
    member.agree()
    await group.finished()
    #expect(journal.entries == ["late", "member"])
  }

  @Test func theLimitHoldsForThoseThatWaited() async {
    let (outside, running, most) = (AsyncOperation(), Locked(0), Journal<Int>())
    let members = (0..<40).map { _ in
      BlockOperation {
        most.write(
          running.withLock { count in
            count += 1
            return count
          }
        )
        running.withLock { $0 -= 1 }
      }
    }
    [outside] ==> members
    let group = await begun(members, limit: 1)
    queue.addOperation(outside)
    await group.finished()
    #expect(most.entries == Array(repeating: 1, count: 40))
  }

  // MARK: Not while the group is suspended

  private func giveFoundationEveryOpportunity() async {
    let other = OperationQueue()
    for _ in 0..<20 { try? await other.run(GroupOperation([plain("x", Journal()), AsyncOperation()])) }
  }

  @Test func itDoesNotStartWhileTheGroupIsSuspended() async {
    let held = HeldOperation()
    let members = [plain("waited", journal), plain("was ready", journal), Willing("willing", journal)]
    held ==> members[0]
    let group = await begun([held])
    await held.begun.opened()
    group.isSuspended = true
    group.addOperations(members)
    held.gate.open()
    await held.finished()
    (members[2] as? Willing)?.agree()
    await giveFoundationEveryOpportunity()
    #expect(journal.entries.isEmpty)
    group.isSuspended = false
    await group.finished()
    #expect(Set(journal.entries) == ["waited", "was ready", "willing"])
  }

  @Test func oneWhoseTurnHasComeDoesNotStartAfterTheGroupIsSuspended() async {
    let member = Willing("member", journal)
    let group = await begun([member])
    let late = NoteOperation("late", journal)
    group.addOperation(late)
    await late.finished()
    group.isSuspended = true
    member.agree()
    await giveFoundationEveryOpportunity()
    #expect(journal.entries == ["late"])
    group.isSuspended = false
    await group.finished()
    #expect(journal.entries == ["late", "member"])
  }

  // MARK: Cycles

  @Test func twoOnACycleAreFinishedWhenTheyAreCancelled() async {
    let (a, b) = (plain("a", journal), plain("b", journal))
    let never = AsyncOperation()
    never ==> a ==> b
    let group = await begun([a, b, HeldOperation()])
    // Closed where the group cannot notice.
    a.addDependency(b)
    a.cancel()
    b.cancel()
    await a.finished()
    await b.finished()
    group.cancel()
    (group.operations.last as? HeldOperation)?.gate.open()
    await group.finished()
    #expect(journal.entries.isEmpty)
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
