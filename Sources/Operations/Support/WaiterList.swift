import Synchronization

/// The closures to call at the end of something, in the order of the waits. Guarded by the lock of its owner.
struct WaiterList {
  typealias Waiter = @Sendable () -> Void

  private static let latestNumber = Atomic(0)

  private var waiters: [Int: Waiter] = [:]

  var count: Int { waiters.count }

  var all: [Waiter] { waiters.count < 2 ? Array(waiters.values) : waiters.sorted { $0.key < $1.key }.map(\.value) }

  @discardableResult
  mutating func add(_ waiter: @escaping Waiter) -> Int {
    let number = Self.latestNumber.wrappingAdd(1, ordering: .relaxed).newValue
    waiters[number] = waiter
    return number
  }

  /// Returns the waiter, which the caller releases after releasing the lock.
  mutating func remove(_ number: Int) -> Waiter? {
    defer { waiters.giveBackRoom() }
    return waiters.removeValue(forKey: number)
  }
}
