import Foundation

/// The ready members of a group, by queue priority, and within a priority in the order in which they became ready. While
/// members of normal priority are only appended and taken, a deque is enough. Otherwise it becomes a heap.
struct ReadyList {
  /// The place of a member. It keeps its number when its priority changes.
  struct Rank: Comparable, Sendable {
    let priority: Operation.QueuePriority
    let number: Int

    static func < (left: Self, right: Self) -> Bool {
      (right.priority.rawValue, left.number) < (left.priority.rawValue, right.number)
    }
  }

  private typealias Heap = DeadlineQueue<Rank, AsyncOperation>

  private var deque = ArrayDeque<AsyncOperation>()
  private var heap = Heap()
  private var places: [ObjectIdentifier: Heap.Place] = [:]
  private var lastNumber = 0

  var count: Int { deque.count + heap.count }
  var isEmpty: Bool { deque.isEmpty && heap.count == 0 }

  /// The caller reads the `queuePriority` without a lock, because a subclass can override it. If `isFirst` is true, the
  /// member goes before all others of its priority.
  mutating func append(_ operation: AsyncOperation, _ priority: Operation.QueuePriority, isFirst: Bool = false) {
    if priority == .normal, heap.count == 0 {
      if isFirst { deque.prepend([operation]) } else { deque.append(operation) }
    } else {
      orderByRank()
      lastNumber += 1
      insert(operation, Rank(priority: priority, number: isFirst ? -lastNumber : lastNumber))
    }
  }

  /// Inserts a member that has been taken, with the number that it had.
  mutating func insert(_ operation: AsyncOperation, _ rank: Rank) {
    orderByRank()
    add(operation, rank)
  }

  mutating func move(_ operation: AsyncOperation, to priority: Operation.QueuePriority) {
    if let number = remove(operation)?.number { insert(operation, Rank(priority: priority, number: number)) }
  }

  /// The caller holds another reference to the operation, which is not released here.
  @discardableResult
  mutating func remove(_ operation: AsyncOperation) -> Rank? {
    orderByRank()
    guard let place = places.removeValue(forKey: ObjectIdentifier(operation)) else { return nil }
    _ = heap.remove(place)
    return place.deadline
  }

  mutating func popFirst() -> (operation: AsyncOperation, rank: Rank)? {
    if let operation = deque.popFirst() { return (operation, Rank(priority: .normal, number: 0)) }
    guard let (rank, operation) = heap.popFirst() else { return nil }
    places[ObjectIdentifier(operation)] = nil
    places.giveBackRoom()
    return (operation, rank)
  }

  mutating func takeAll() -> [AsyncOperation] { (0..<count).compactMap { _ in popFirst()?.operation } }

  private mutating func orderByRank() {
    while let operation = deque.popFirst() {
      lastNumber += 1
      add(operation, Rank(priority: .normal, number: lastNumber))
    }
  }

  private mutating func add(_ operation: AsyncOperation, _ rank: Rank) {
    let id = ObjectIdentifier(operation)
    if places[id] == nil { places[id] = heap.add(operation, at: rank) }
  }
}
