import Foundation

/// The ready members of a group, by queue priority, and within a priority in the order in which they arrived. While
/// members of normal priority are only appended and taken, a deque is enough. Otherwise it becomes a heap.
struct ReadyList {
  /// The place of a member. It keeps its number when its priority changes, and when it returns.
  struct Rank: Comparable, Sendable {
    var priority: Operation.QueuePriority
    let number: Int

    static func < (left: Self, right: Self) -> Bool {
      (right.priority.rawValue, left.number) < (left.priority.rawValue, right.number)
    }
  }

  private typealias Heap = DeadlineQueue<Rank, AsyncOperation>

  /// Members of normal priority, by number.
  private var deque = ArrayDeque<(rank: Rank, operation: AsyncOperation)>()
  private var heap = Heap()
  private var places: [ObjectIdentifier: Heap.Place] = [:]
  private var lastNumber = 0

  var count: Int { deque.count + heap.count }
  var isEmpty: Bool { deque.isEmpty && heap.count == 0 }

  var firstRank: Rank? { deque.first?.rank ?? heap.earliest }

  /// Nil if the member is not in the list.
  func rank(of operation: AsyncOperation) -> Rank? {
    places[ObjectIdentifier(operation)]?.deadline ?? deque.all.first { $0.operation === operation }?.rank
  }

  /// Returns how many members come before a rank, or `limit` if there are more.
  func count(before rank: Rank, limit: Int) -> Int {
    guard let firstRank, firstRank < rank else { return 0 }
    if heap.count > 0 { return heap.count(before: rank, limit: limit) }
    var count = 0
    for (other, _) in deque.all.prefix(limit) where other < rank { count += 1 }
    return count
  }

  /// Returns the number of a member that arrives now.
  mutating func makeNumber() -> Int {
    lastNumber += 1
    return lastNumber
  }

  /// Appends a member that arrives now, or one that has arrived before, with its number. The caller reads the
  /// `queuePriority` without a lock, because a subclass can override it.
  mutating func append(_ operation: AsyncOperation, _ priority: Operation.QueuePriority, number: Int? = nil) {
    insert(operation, Rank(priority: priority, number: number ?? makeNumber()))
  }

  mutating func insert(_ operation: AsyncOperation, _ rank: Rank) {
    if rank.priority == .normal, heap.count == 0, deque.last?.rank.number ?? 0 < rank.number {
      deque.append((rank, operation))
    } else {
      orderByRank()
      add(operation, rank)
    }
  }

  mutating func move(_ operation: AsyncOperation, to priority: Operation.QueuePriority) {
    guard var rank = remove(ObjectIdentifier(operation)) else { return }
    rank.priority = priority
    insert(operation, rank)
  }

  /// Another reference to the operation must exist, which is not released here.
  @discardableResult
  mutating func remove(_ operation: ObjectIdentifier) -> Rank? {
    orderByRank()
    guard let place = places.removeValue(forKey: operation) else { return nil }
    _ = heap.remove(place)
    return place.deadline
  }

  mutating func popFirst() -> (operation: AsyncOperation, rank: Rank)? {
    guard let (rank, operation) = deque.popFirst() ?? popFromHeap() else { return nil }
    return (operation, rank)
  }

  mutating func takeAll() -> [AsyncOperation] { (0..<count).compactMap { _ in popFirst()?.operation } }

  private mutating func popFromHeap() -> (rank: Rank, operation: AsyncOperation)? {
    guard let (rank, operation) = heap.popFirst() else { return nil }
    places[ObjectIdentifier(operation)] = nil
    places.giveBackRoom()
    return (rank, operation)
  }

  private mutating func orderByRank() {
    while let (rank, operation) = deque.popFirst() { add(operation, rank) }
  }

  private mutating func add(_ operation: AsyncOperation, _ rank: Rank) {
    let id = ObjectIdentifier(operation)
    guard places[id] == nil else { return }
    places[id] = heap.add(operation, at: rank)
  }
}
