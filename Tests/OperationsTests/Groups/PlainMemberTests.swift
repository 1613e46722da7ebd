import Foundation
import Operations
import OperationsTestSupport
import Testing

/// A plain Foundation operation behaves as a member as it does in a stock queue.
@Suite(.timeLimit(.minutes(5)))
struct PlainMemberTests {
  /// A plain operation that says itself when it is ready.
  private final class Willing: Operation, @unchecked Sendable {
    private let lock = NSLock()
    private var isWilling = false
    private let journal: Journal<String>

    init(_ name: String, _ journal: Journal<String>) {
      self.journal = journal
      super.init()
      self.name = name
    }

    override var isReady: Bool { lock.withLock { isWilling } && super.isReady }

    override func main() { journal.write(name ?? "") }

    func agree() {
      willChangeValue(for: \.isReady)
      lock.withLock { isWilling = true }
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
    queue.addOperation(group)
    await began.opened()
    return group
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

  @Test func cancelledByNameItFinishesAtOnce() async {
    let never = BlockOperation {}
    let member = plain("member", journal)
    never ==> member
    let group = await begun([member])
    #expect(group.cancelOperations(named: "member") == 1)
    await group.finished()
    #expect(journal.entries.isEmpty)
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

  @Test func manyThatAreCancelledWhileTheirDependenciesFinish() async {
    for round in 0..<300 {
      let outside = HeldOperation()
      let members = (0..<4).map { plain("\($0)", journal) }
      for member in members { outside ==> member }
      let group = GroupOperation(members)
      group.maxConcurrentOperationCount = round % 3 == 0 ? 1 : -1
      queue.addOperation(group)
      OperationQueue().addOperation(outside)
      await onThreads(3) { thread in
        switch thread {
        case 0: for member in members { member.cancel() }
        case 1: outside.gate.open()
        default: _ = group.cancelOperations(named: "2")
        }
      }
      await group.finished()
      #expect(members.allSatisfy { $0.isFinished })
    }
  }

  // MARK: No slot before it is ready

  @Test func aDependencyAddedToOneThatIsReadyTakesNoSlot() async {
    let held = HeldOperation()
    let member = plain("member", journal)
    let other = NoteOperation("other", journal)
    let group = await begun([held, member], limit: 1)
    await held.begun.opened()
    group.addOperation(other)
    other ==> member
    held.gate.open()
    await group.finished()
    #expect(journal.entries == ["other", "member"])
  }

  @Test func aDependencyAddedToOneThatWaitsTakesNoSlot() async {
    let held = HeldOperation()
    let (member, other) = (plain("member", journal), NoteOperation("other", journal))
    held ==> member
    let group = await begun([held, member], limit: 1)
    await held.begun.opened()
    group.addOperation(other)
    other ==> member
    held.gate.open()
    await group.finished()
    #expect(journal.entries == ["other", "member"])
  }

  @Test func oneThatIsNotReadyByItselfTakesNoSlot() async {
    let member = Willing("member", journal)
    let group = await begun([member, NoteOperation("other", journal)], limit: 1)
    await group.operations(named: "other").first?.finished()
    let late = NoteOperation("late", journal)
    group.addOperation(late)
    await late.finished()
    #expect(journal.entries == ["other", "late"])
    member.agree()
    await group.finished()
    #expect(journal.entries == ["other", "late", "member"])
  }

  @Test func oneThatWaitedAndIsNotReadyByItselfTakesNoSlot() async {
    let held = HeldOperation()
    let member = Willing("member", journal)
    held ==> member
    let group = await begun([held, member], limit: 1)
    held.gate.open()
    let late = NoteOperation("late", journal)
    group.addOperation(late)
    await late.finished()
    member.agree()
    await group.finished()
    #expect(journal.entries == ["late", "member"])
  }

  @Test func theLimitHoldsForThoseThatWaited() async {
    let outside = AsyncOperation()
    let running = Journal<Int>()
    let count = LockedCount()
    let members = (0..<40).map { _ in
      BlockOperation {
        running.write(count.add(1))
        count.add(-1)
      }
    }
    for member in members { outside ==> member }
    let group = await begun(members, limit: 1)
    queue.addOperation(outside)
    await group.finished()
    #expect(running.entries == Array(repeating: 1, count: 40))
  }

  // MARK: Not while the group is suspended

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
    // Foundation has had every opportunity.
    let other = OperationQueue()
    for _ in 0..<20 { try? await other.run(GroupOperation([plain("x", Journal()), AsyncOperation()])) }
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
    // Foundation has had every opportunity.
    let other = OperationQueue()
    for _ in 0..<20 { try? await other.run(GroupOperation([plain("x", Journal()), AsyncOperation()])) }
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
    await settled { member.dependencies.count == 2 }
    #expect(OperationGraph([group]).nodes.count == 3, "it is in no drawing")
    queue.addOperation(outside)
    await group.finished()
    #expect(member.dependencies.isEmpty)
  }

  private func settled(_ condition: () -> Bool) async { while !condition() { await Task.yield() } }
}

/// A number that many threads change.
private final class LockedCount: @unchecked Sendable {
  private let lock = NSLock()
  private var value = 0

  @discardableResult
  func add(_ amount: Int) -> Int {
    lock.withLock {
      value += amount
      return value
    }
  }
}
