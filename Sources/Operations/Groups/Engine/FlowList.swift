import Foundation

/// The ready members that have a flow, and the executing members of each flow. Each change costs O(log n).
struct FlowList {
  /// The place of a flow among the flows.
  struct Turn: Comparable, Sendable {
    /// That of its first member.
    let rank: ReadyList.Rank
    let executing: Int
    /// When a member was taken last, as a number of members taken.
    let served: Int

    static func < (left: Self, right: Self) -> Bool {
      (right.rank.priority, left.executing, left.served, left.rank.ticket)
        < (left.rank.priority, right.executing, right.served, right.rank.ticket)
    }
  }

  private struct Flow {
    var members = DeadlineQueue<ReadyList.Rank, AsyncOperation>()
    var executing = 0
    var served = 0
    var turn: DeadlineQueue<Turn, Int>.Place?
  }

  private var flows = SlotList(vacant: Flow())
  private var indices: [ExclusivityKey: Int] = [:]
  private var turns = DeadlineQueue<Turn, Int>()
  private var ready: [ObjectIdentifier: (flow: Int, place: DeadlineQueue<ReadyList.Rank, AsyncOperation>.Place)] = [:]
  private var executing: [ObjectIdentifier: Int] = [:]
  private var takenCount = 0
  /// When a member without a flow was taken last.
  private(set) var othersServed = 0

  var count: Int { ready.count }
  var executingCount: Int { executing.count }
  var first: Turn? { turns.earliest }
  var firstMember: AsyncOperation? { turns.first.flatMap { flows[$0].members.first } }

  func contains(_ member: ObjectIdentifier) -> Bool { ready[member] != nil }

  mutating func insert(_ member: AsyncOperation, _ rank: ReadyList.Rank, at flow: Int) {
    guard ready[ObjectIdentifier(member)] == nil else { return }
    ready[ObjectIdentifier(member)] = (flow, flows[flow].members.add(member, at: rank))
    changed(flow)
  }

  mutating func remove(_ member: ObjectIdentifier) -> (flow: Int, rank: ReadyList.Rank)? {
    if ready.isEmpty { return nil }
    guard let (flow, place) = ready.removeValue(forKey: member) else { return nil }
    _ = flows[flow].members.remove(place)
    changed(flow)
    return (flow, place.deadline)
  }

  /// Takes the next member, which executes until ``finish(_:)``.
  mutating func popFirst() -> (operation: AsyncOperation, rank: ReadyList.Rank)? {
    guard let flow = turns.first, let (rank, member) = flows[flow].members.popFirst() else { return nil }
    ready[ObjectIdentifier(member)] = nil
    ready.giveBackRoom()
    start(ObjectIdentifier(member), at: flow)
    return (member, rank)
  }

  /// Counts a member that was taken, with or without a flow.
  mutating func start(_ member: ObjectIdentifier, at flow: Int?) {
    guard let flow else { return startWithoutFlow() }
    takenCount += 1
    // A member that gained a dependency meanwhile can be taken twice.
    guard executing.updateValue(flow, forKey: member) == nil else { return }
    flows[flow].executing += 1
    flows[flow].served = takenCount
    changed(flow)
  }

  mutating func startWithoutFlow() {
    takenCount += 1
    othersServed = takenCount
  }

  /// - Returns: The flow of the member, if it has one.
  @discardableResult
  mutating func finish(_ member: ObjectIdentifier) -> Int? {
    if executing.isEmpty { return nil }
    guard let flow = executing.removeValue(forKey: member) else { return nil }
    executing.giveBackRoom()
    flows[flow].executing -= 1
    changed(flow)
    return flow
  }

  mutating func takeAll() -> [AsyncOperation] {
    ready = [:]
    turns = DeadlineQueue()
    return flows.indices.flatMap { flow in
      flows[flow].turn = nil
      return flows[flow].members.removeAll()
    }
  }

  /// Forgets the flows without members if they are many, in amortized O(1). The caller releases their keys, which may be
  /// the last references to objects of the program.
  mutating func forgetIdleFlows() -> [ExclusivityKey: Int] {
    if indices.count <= 2 * (turns.count + executing.count) + 64 { return [:] }
    let idle = indices.filter { flows[$1].executing == 0 && flows[$1].members.count == 0 }
    for (key, flow) in idle {
      indices[key] = nil
      flows.remove(flow)
    }
    indices.giveBackRoom()
    return idle
  }

  mutating func index(of key: ExclusivityKey) -> Int {
    if let index = indices[key] { return index }
    let new = flows.nextIndex
    indices[key] = new
    flows.insert(Flow())
    return new
  }

  private mutating func changed(_ flow: Int) {
    if let turn = flows[flow].turn { _ = turns.remove(turn) }
    let (executing, served) = (flows[flow].executing, flows[flow].served)
    flows[flow].turn = flows[flow].members.earliest.map { rank in
      turns.add(flow, at: Turn(rank: rank, executing: executing, served: served))
    }
  }
}
