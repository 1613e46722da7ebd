import Foundation

/// The ready members of a group by rank, unless they have flows, in a deque or, if they arrive out of order, in a heap.
struct ReadyList {
  /// The place of a member. It keeps its ticket when its priority changes, and when it returns.
  typealias Rank = ArrivalRank<Int>

  private var deque = ArrayDeque<(operation: AsyncOperation, rank: Rank)>()
  private var heap = RankedList<AsyncOperation>()
  private var lastNumber = 0
  /// The members that have a flow. The other members are one flow.
  var flows = FlowList()
  var slotsTaken = 0

  var count: Int { deque.count + heap.count + flows.count }
  var isEmpty: Bool { deque.isEmpty && heap.isEmpty && flows.count == 0 }

  @inline(__always)
  var first: AsyncOperation? { isFlowNext() ? flows.firstMember : deque.first?.operation ?? heap.first }

  @inline(__always) var firstRank: Rank? { isFlowNext() ? flows.first?.rank : firstWithoutFlow }

  @inline(__always) private var firstWithoutFlow: Rank? { deque.first?.rank ?? heap.firstRank }

  mutating func contains(_ operation: AsyncOperation) -> Bool {
    if flows.contains(ObjectIdentifier(operation)) { return true }
    orderByRank()
    return heap.contains(operation)
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
    } else if heap.isEmpty, deque.last.map({ $0.rank < rank }) ?? true {
      deque.append((operation, rank))
    } else {
      orderByRank()
      heap.insert(operation, rank)
    }
  }

  mutating func move(_ operation: AsyncOperation, to priority: Operation.QueuePriority) {
    if let (flow, rank) = flows.remove(ObjectIdentifier(operation)) {
      flows.insert(operation, Rank(priority: priority.rawValue, ticket: rank.ticket), at: flow)
    } else {
      orderByRank()
      heap.move(operation, to: priority)
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
    return member.flatMap { flows.finish($0) }
  }

  /// Another reference to the operation must exist, which is not released here.
  @discardableResult
  mutating func remove(_ operation: ObjectIdentifier) -> Rank? {
    if let (_, rank) = flows.remove(operation) { return rank }
    orderByRank()
    return heap.remove(operation)
  }

  mutating func popFirst() -> (operation: AsyncOperation, rank: Rank)? {
    if isFlowNext() { return flows.popFirst() }
    let next = popWithoutFlow()
    if let next { flows.start(ObjectIdentifier(next.operation), at: nil) }
    return next
  }

  mutating func takeAll() -> [AsyncOperation] {
    let members = flows.takeAll()
    return members + (0..<count).compactMap { _ in popWithoutFlow()?.operation }
  }

  private mutating func popWithoutFlow() -> (operation: AsyncOperation, rank: Rank)? {
    if let next = deque.popFirst() { return next }
    return heap.popFirst().map { ($0.element, $0.rank) }
  }

  private mutating func orderByRank() {
    while let (operation, rank) = deque.popFirst() { heap.insert(operation, rank) }
  }
}

/// Objects in the order of their ranks. Each change costs O(log n).
struct RankedList<Element: AnyObject> {
  typealias Rank = ReadyList.Rank

  private var queue = DeadlineQueue<Rank, Element>()
  private var places: [ObjectIdentifier: DeadlineQueue<Rank, Element>.Place] = [:]

  var count: Int { queue.count }
  var isEmpty: Bool { queue.count == 0 }
  var first: Element? { queue.first }
  var firstRank: Rank? { queue.earliest }

  func contains(_ element: Element) -> Bool { places[ObjectIdentifier(element)] != nil }

  /// Has no effect on an element that is in the list.
  mutating func insert(_ element: Element, _ rank: Rank) {
    let id = ObjectIdentifier(element)
    if places[id] == nil { places[id] = queue.add(element, at: rank) }
  }

  mutating func remove(_ id: ObjectIdentifier) -> Rank? {
    guard let place = places.removeValue(forKey: id) else { return nil }
    _ = queue.remove(place)
    return place.deadline
  }

  mutating func move(_ element: Element, to priority: Operation.QueuePriority) {
    guard let rank = remove(ObjectIdentifier(element)) else { return }
    insert(element, Rank(priority: priority.rawValue, ticket: rank.ticket))
  }

  mutating func popFirst() -> (element: Element, rank: Rank)? {
    guard let (rank, element) = queue.popFirst() else { return nil }
    places[ObjectIdentifier(element)] = nil
    places.giveBackRoom()
    return (element, rank)
  }

  mutating func removeAll() -> [Element] {
    places = [:]
    return queue.removeAll()
  }
}
