/// The holders of one key, and the operations that wait for the key: a part of ``KeyTable``.
struct KeyQueue {
  /// The identity of a queue: a key, or the use of a key among the members of one of its holders.
  struct ID: Hashable {
    let domain: ExclusivityDomain
    let key: ExclusivityKey
    /// The entry whose members share the queue. Nil for the queue of the whole program.
    var holder: Int?

    /// The queue of the whole program for the same key. The starts under a throttled key are counted there.
    var outermost: Self { holder == nil ? self : Self(domain: domain, key: key) }

    static func == (left: Self, right: Self) -> Bool {
      left.domain === right.domain && left.holder == right.holder && left.key == right.key
    }

    func hash(into hasher: inout Hasher) {
      hasher.combine(ObjectIdentifier(domain))
      hasher.combine(key)
      hasher.combine(holder)
    }
  }

  let id: ID
  /// The number of entries that claim the key, in any state.
  var claimCount = 0
  /// The entries that hold the key, and those that have a permit.
  private(set) var holders: Set<Int> = []
  /// The finite limits of the holders, in ascending order.
  private var limits: [Int] = []
  var replacedCount = 0
  // The tickets of entries that no longer have these states stay in the wait queues until they are first, or most are
  // stale.
  var preferred = ArrayDeque<Int>()
  var waiting = ArrayDeque<Int>()
  /// The overdue entries, by the queue or group that starts them.
  var overdue: [ObjectIdentifier: Set<Int>] = [:]
  /// The deferred entries, by the queue or group whose overdue entries they wait behind.
  var deferred: [ObjectIdentifier: Set<Int>] = [:]

  static var vacant: Self { Self(ID(domain: .shared, key: "")) }

  init(_ id: ID) { self.id = id }

  var hasWaiters: Bool { !preferred.isEmpty || !waiting.isEmpty }

  var isUndisputed: Bool { !hasWaiters && overdue.isEmpty }

  var isMostlyStale: Bool { preferred.count + waiting.count > claimCount * 2 + 32 }

  var smallestLimit: Int { limits.first ?? .max }

  func admits(_ limit: Int) -> Bool { holders.count < min(limit, smallestLimit) }

  mutating func add(holder: Int, limit: Int) {
    holders.insert(holder)
    if limit == .max { return }
    if limit >= limits.last ?? 0 { limits.append(limit) } else { limits.insert(limit, at: index(after: limit)) }
  }

  mutating func remove(holder: Int, limit: Int) {
    holders.remove(holder)
    if limit < .max { limits.remove(at: index(after: limit) - 1) }
  }

  /// Returns the index of the first larger limit, by a binary search.
  private func index(after limit: Int) -> Int {
    var (low, high) = (0, limits.count)
    while low < high {
      let middle = (low + high) / 2
      if limits[middle] <= limit { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
