import Foundation
import OperationsTestSupport
import Testing

@testable import Operations

/// Members of different flows take turns. The rule among keys, limits and pauses is tested in `RandomTurnTests`.
@Suite(.timeLimit(.minutes(5)))
struct FlowTests {
  private let queue = OperationQueue()
  private let journal = Journal<String>()

  /// Waits for members in groups that have one slot, which a member without a flow uses first.
  private func order(of members: [AsyncOperation]) async -> String {
    let held = HeldOperation()
    let group = await queue.add(GroupOperation([held], maxConcurrentOperationCount: 1), until: held.begun)
    for member in members { group.addOperation(member) }
    await group.finished(opening: held.gate)
    return journal.entries.joined()
  }

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
    #expect(await order(of: notes(of: flows)) == expected)
  }

  @Test func aMemberWhosePriorityChanges_keepsItsFlow() async {
    let (notes, held) = (notes(of: "aab"), HeldOperation())
    let group = GroupOperation([held] + notes, maxConcurrentOperationCount: 1)
    held.queuePriority = .veryHigh
    await queue.add(group, until: held.begun)
    for priority in [Operation.QueuePriority.high, .normal] { notes[0].queuePriority = priority }
    await group.finished(opening: held.gate)
    #expect(journal.entries == ["0", "2", "1"])
  }

  /// The group reads such a priority again before it starts the member.
  @Test func aMemberThatIsPutBack_keepsItsFlow() async {
    let (falling, held) = (PriorityOperation(.high), HeldOperation())
    falling.flow = "a"
    falling.addObserver(didStart: { [journal] _ in journal.write("falling") })
    let group = await queue.add(GroupOperation([held], maxConcurrentOperationCount: 1), until: held.begun)
    for member in [falling] + notes(of: "ab") { group.addOperation(member) }
    falling.priority.withLock { $0 = .normal }
    await group.finished(opening: held.gate)
    // Its flow counts as served, but not as executing.
    #expect(journal.entries == ["1", "falling", "0"])
  }

  @Test func aSlotOfAGroup_belongsToAFlow() async throws {
    let held = HeldOperation()
    let group = GroupOperation(maxConcurrentOperationCount: 1).started()
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
      #expect(list.end(ObjectIdentifier(member)) != nil)
      forgotten += list.forgetIdleFlows().count
    }
    #expect(forgotten > 9_900)
  }
}
