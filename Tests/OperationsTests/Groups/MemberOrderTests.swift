import Foundation
import OperationsTestSupport
import Testing

@testable import Operations

/// The order of ready members, by priority and flow. `RandomTurnTests` check the rule among keys, limits and pauses.
@Suite(.timeLimit(.minutes(5)))
struct MemberOrderTests {
  private static let changes: [([(Int, Operation.QueuePriority)], String)] = [
    ([], "abc"),
    ([(2, .high)], "cab"),
    ([(0, .low)], "bca"),
    ([(2, .high), (2, .low), (1, .veryLow)], "acb"),
    ([(0, .high), (0, .normal)], "abc"),
    ([(2, .high), (0, .high)], "acb"),
  ]

  private let queue = OperationQueue()
  private let journal = Journal<String>()

  private func notes() -> [NoteOperation] { ["a", "b", "c"].map { NoteOperation($0, journal) } }

  /// Starts a group with one slot, which the first member uses.
  private func begin(_ held: HeldOperation, _ others: [Operation] = []) async -> GroupOperation {
    await queue.add(GroupOperation([held] + others, maxConcurrentOperationCount: 1), until: held.begun)
  }

  @Test(arguments: Self.changes, [true, false])
  func changesOfReadyMembers_count(
    _ expected: (changes: [(Int, Operation.QueuePriority)], order: String),
    isStarted: Bool
  ) async {
    let (held, members) = (HeldOperation(), notes())
    held.queuePriority = .veryHigh
    let group = GroupOperation([held] + members, maxConcurrentOperationCount: 1)
    if isStarted { await queue.add(group, until: held.begun) }
    for (index, priority) in expected.changes { members[index].queuePriority = priority }
    if !isStarted { await queue.add(group, until: held.begun) }
    await group.finished(opening: held.gate)
    #expect(journal.entries.joined() == expected.order && group.isSuccessful)
  }

  @Test(arguments: [true, false])
  func plainMemberRaisedBeforeItsGroupStartsOrLoweredLater_counts(isRaised: Bool) async {
    let (held, members) = (HeldOperation(), ["a", "b"].map { plain($0, journal) })
    held.queuePriority = .veryHigh
    let group = GroupOperation([held] + members, maxConcurrentOperationCount: 1)
    if isRaised { members[1].queuePriority = .high }
    await queue.add(group, until: held.begun)
    if !isRaised { members[0].queuePriority = .low }
    await group.finished(opening: held.gate)
    #expect(journal.entries == ["b", "a"])
  }

  @Test func plainMemberRaisedWhileItWaitsForAnother_comesFirst() async {
    let (held, members) = (HeldOperation(), ["a", "b"].map { plain($0, journal) })
    held ==> members
    let group = await begin(held, members)
    members[1].queuePriority = .high
    group.isSuspended = true
    await held.finished(opening: held.gate)
    await poll { group.engine.state.withLock { $0.schedule.ready.count } == 2 }
    await group.ended()
    #expect(journal.entries == ["b", "a"])
  }

  @Test func aMemberAddedLater_takesThePriorityLentToItsGroupBeforeItIsOrdered() async {
    let (held, members) = (HeldOperation(), notes())
    let group = await begin(held)
    group.escalatePriority(to: .high)
    members[1].queuePriority = .high
    for member in members { group.addOperation(member) }
    await group.finished(opening: held.gate)
    #expect(journal.entries == ["a", "b", "c"])
  }

  @Test(arguments: [true, false])
  func aPriorityThatVaries_doesNotHang(isLimited: Bool) async {
    final class Varying: AsyncOperation, @unchecked Sendable {
      override var queuePriority: QueuePriority {
        get { [QueuePriority.veryHigh, .high, .normal, .low, .veryLow].randomElement() ?? .normal }
        set { super.queuePriority = newValue }
      }
    }
    let members = (0..<500).map { _ in Varying() }
    let group = GroupOperation(members, maxConcurrentOperationCount: isLimited ? 1 : -1)
    queue.addOperation(group)
    for member in members { member.queuePriority = .veryHigh }
    await group.finished()
    #expect(members.allSatisfy { $0.isSuccessful })
  }

  @Test func aPriorityThatRisesUnseenWhileItsKeyIsTaken_counts() async {
    let (domain, member, held) = (ExclusivityDomain(), PriorityOperation(.normal), HeldOperation())
    member.exclusive("key", in: domain).addObserver(didStart: { [journal] _ in journal.write("member") })
    let holder = await queue.holder(of: "key", in: domain)
    let group = await begin(held)
    group.addOperations([NoteOperation("note", journal), member])
    member.priority.withLock { $0 = .veryHigh }
    holder.gate.open()
    await poll { member.shownPhase == .pending(.slot) }
    await group.finished(opening: held.gate)
    #expect(journal.entries == ["member", "note"])
  }

  /// Although any thread could start the first one, and the second one could take its key with the slot.
  @Test(arguments: [false, true]) func ofMembersThatArriveTogether_theMostUrgentStartsFirst(isStarted: Bool) async {
    let members = ["a", "b", "c"].map { name in TaskOperation { [journal] () async in journal.write(name) } }
    members[1].exclusive("key", in: ExclusivityDomain())
    members[2].queuePriority = .high
    let group = GroupOperation(isStarted ? [] : members, maxConcurrentOperationCount: 1).started()
    if isStarted { group.addOperations(members) }
    for member in members { await member.finished() }
    #expect(journal.entries == ["c", "a", "b"])
    await group.ended()
  }

  // MARK: Flows

  private func notes(of flows: String) -> [AsyncOperation] {
    zip(0..., flows).map { index, flow in
      let note = NoteOperation("\(index)", journal)
      if flow != "-" { note.flow = ExclusivityKey("\(flow)") }
      return note
    }
  }

  /// Each letter is the flow of a member, and `-` is a member without one.
  @Test(arguments: [("aaabbb", "031425"), ("aaaa", "0123"), ("aaab--", "034152"), ("--ab", "2301"), ("abcab", "01234")])
  func flowsTakeTurns(flows: String, expected: String) async {
    let held = HeldOperation()
    let group = await begin(held)
    for member in notes(of: flows) { group.addOperation(member) }
    await group.finished(opening: held.gate)
    #expect(journal.entries.joined() == expected)
  }

  @Test func aMemberWhosePriorityChanges_keepsItsFlow() async {
    let (notes, held) = (notes(of: "aab"), HeldOperation())
    held.queuePriority = .veryHigh
    let group = await begin(held, notes)
    for priority in [Operation.QueuePriority.high, .normal] { notes[0].queuePriority = priority }
    await group.finished(opening: held.gate)
    #expect(journal.entries == ["0", "2", "1"])
  }

  /// The group reads such a priority again before it starts the member.
  @Test func aMemberThatIsPutBack_keepsItsFlow() async {
    let (falling, held) = (PriorityOperation(.high), HeldOperation())
    falling.flow = "a"
    falling.addObserver(didStart: { [journal] _ in journal.write("falling") })
    let group = await begin(held)
    for member in [falling] + notes(of: "ab") { group.addOperation(member) }
    falling.priority.withLock { $0 = .normal }
    await group.finished(opening: held.gate)
    // Its flow counts as served, but not as executing.
    #expect(journal.entries == ["1", "falling", "0"])
  }

  @Test func aSlotOfAGroup_belongsToAFlow() async throws {
    let (held, group) = (HeldOperation(), GroupOperation(maxConcurrentOperationCount: 1).started())
    held.flow = "a"
    group.addOperation(held)
    await held.begun.opened()
    for note in notes(of: "aa") { group.addOperation(note) }
    let task = Task { try await group.withSlot("slot", flow: "b") { journal.write("slot") } }
    await poll { group.engine.state.withLock { $0.schedule.ready.count } == 3 }
    #expect((group.operations(named: "slot").first as? AsyncOperation)?.flow == "b")
    try await task.value(opening: held.gate)
    await group.ended()
    #expect(journal.entries == ["slot", "0", "1"])
  }

  @Test func flowsWithoutMembers_areForgotten() {
    var list = FlowList()
    var forgotten = 0
    for number in 0..<10_000 {
      let member = AsyncOperation()
      list.insert(member, ReadyList.Rank(priority: 0, ticket: number), at: list.index(of: ExclusivityKey(number)))
      #expect(list.popFirst()?.operation === member)
      #expect(list.finish(ObjectIdentifier(member)) != nil)
      forgotten += list.forgetIdleFlows().count
    }
    #expect(forgotten > 9_900)
  }
}
