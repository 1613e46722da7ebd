import Foundation

/// The ready members of a group by rank, unless they have flows, in a deque or, if they arrive out of order, in a heap.
struct ReadyList {
  /// The place of a member. It keeps its ticket when its priority changes, and when it returns.
  typealias Rank = ArrivalRank<Int>

  private typealias Heap = DeadlineQueue<Rank, AsyncOperation>

  private var deque = ArrayDeque<(operation: AsyncOperation, rank: Rank)>()
  private var heap = Heap()
  private var places: [ObjectIdentifier: Heap.Place] = [:]
  private var lastNumber = 0
  /// The members that have a flow. The other members are one flow.
  var flows = FlowList()
  var slotsTaken = 0

  var count: Int { deque.count + heap.count + flows.count }
  var isEmpty: Bool { deque.isEmpty && heap.count == 0 && flows.count == 0 }

  @inline(__always)
  var first: AsyncOperation? { isFlowNext() ? flows.firstMember : deque.first?.operation ?? heap.first }

  @inline(__always) var firstRank: Rank? { isFlowNext() ? flows.first?.rank : firstWithoutFlow }

  @inline(__always) private var firstWithoutFlow: Rank? { deque.first?.rank ?? heap.earliest }

  mutating func contains(_ operation: AsyncOperation) -> Bool {
    if flows.contains(ObjectIdentifier(operation)) { return true }
    orderByRank()
    return places[ObjectIdentifier(operation)] != nil
  }

  @inline(__always) private func isFlowNext() -> Bool {
    guard let turn = flows.first else { return false }
    guard let rank = firstWithoutFlow else { return true }
    let executing = slotsTaken - flows.executingCount
    return turn < FlowList.Turn(rank: rank, executing: executing, served: flows.othersServed)
  }

  mutating func makeNumber() -> Int {
    lastNumber += 1
    return lastNumber
  }

  /// Adds a member. The caller reads its priority without a lock, because a subclass can override `queuePriority`.
  mutating func insert(_ operation: AsyncOperation, _ rank: Rank, of flow: ExclusivityKey? = nil) {
    if let flow {
      flows.insert(operation, rank, at: flows.index(of: flow))
    } else if heap.count == 0, deque.last.map({ $0.rank < rank }) ?? true {
      deque.append((operation, rank))
    } else {
      orderByRank()
      add(operation, rank)
    }
  }

  mutating func move(_ operation: AsyncOperation, to priority: Operation.QueuePriority) {
    if let (flow, rank) = flows.remove(ObjectIdentifier(operation)) {
      flows.insert(operation, Rank(priority: priority.rawValue, ticket: rank.ticket), at: flow)
    } else if let rank = remove(ObjectIdentifier(operation)) {
      insert(operation, Rank(priority: priority.rawValue, ticket: rank.ticket))
    }
  }

  /// Puts back a member that was taken, and its slot.
  mutating func putBack(_ operation: AsyncOperation, _ rank: Rank) {
    if let flow = returnSlot(of: ObjectIdentifier(operation)) {
      flows.insert(operation, rank, at: flow)
    } else {
      insert(operation, rank)
    }
  }

  @discardableResult
  mutating func returnSlot(of member: ObjectIdentifier? = nil) -> Int? {
    slotsTaken -= 1
    return member.flatMap { flows.end($0) }
  }

  /// Another reference to the operation must exist, which is not released here.
  @discardableResult
  mutating func remove(_ operation: ObjectIdentifier) -> Rank? {
    if let (_, rank) = flows.remove(operation) { return rank }
    orderByRank()
    guard let place = places.removeValue(forKey: operation) else { return nil }
    _ = heap.remove(place)
    return place.deadline
  }

  mutating func popFirst() -> (operation: AsyncOperation, rank: Rank)? {
    if isFlowNext() { return flows.popFirst() }
    let next = popWithoutFlow()
    if let next { flows.begin(ObjectIdentifier(next.operation), at: nil) }
    return next
  }

  mutating func takeAll() -> [AsyncOperation] {
    let members = flows.takeAll()
    return members + (0..<count).compactMap { _ in popWithoutFlow()?.operation }
  }

  private mutating func popWithoutFlow() -> (operation: AsyncOperation, rank: Rank)? {
    if let next = deque.popFirst() { return next }
    guard let (rank, operation) = heap.popFirst() else { return nil }
    places[ObjectIdentifier(operation)] = nil
    places.giveBackRoom()
    return (operation, rank)
  }

  private mutating func orderByRank() {
    while let (operation, rank) = deque.popFirst() { add(operation, rank) }
  }

  private mutating func add(_ operation: AsyncOperation, _ rank: Rank) {
    let id = ObjectIdentifier(operation)
    guard places[id] == nil else { return }
    places[id] = heap.add(operation, at: rank)
  }
}
