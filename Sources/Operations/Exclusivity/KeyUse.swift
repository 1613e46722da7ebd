/// The number of a claimant in the order of arrival, and its place in the table of keys.
struct KeyTicket: Hashable, Comparable, Sendable {
  let number: Int
  let place: Int

  static func < (left: Self, right: Self) -> Bool { left.number < right.number }

  func hash(into hasher: inout Hasher) { hasher.combine(number) }
}

/// The claimants of one key, or of one key among the members of one of its holders: a part of ``KeyTable``.
struct KeyUse {
  struct ID: Hashable {
    let domain: ExclusivityDomain
    let key: ExclusivityKey
    /// The entry whose members share the use. Nil for the use in the whole program.
    var holder: Int?

    /// The use of the same key in the whole program. The starts under a throttled key are counted there.
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

  /// Claimants that share the key, the sum of their weights, and their limits. Usually there is only one.
  struct Load {
    private var first: (ticket: KeyTicket, limit: Int)?
    private var others: Set<KeyTicket> = []
    /// The finite limits of the others, in ascending order.
    private var limits: [Int] = []
    private(set) var sum = 0

    var tickets: [KeyTicket] { (first.map { [$0.ticket] } ?? []) + others }
    var count: Int { (first == nil ? 0 : 1) + others.count }
    var smallestLimit: Int { min(first?.limit ?? .max, limits.first ?? .max) }

    /// Compares without a sum, which may overflow.
    func admits(_ share: KeyEntry.Share) -> Bool { share.weight <= min(share.limit, smallestLimit) - sum }

    mutating func add(_ ticket: KeyTicket, _ share: KeyEntry.Share) {
      sum += share.weight
      if first == nil {
        first = (ticket, share.limit)
        return
      }
      others.insert(ticket)
      if share.limit < .max { limits.insert(share.limit, at: index(after: share.limit)) }
    }

    mutating func remove(_ ticket: KeyTicket, _ share: KeyEntry.Share) {
      sum -= share.weight
      if first?.ticket == ticket {
        first = nil
        return
      }
      others.remove(ticket)
      if share.limit < .max { limits.remove(at: index(after: share.limit) - 1) }
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

  let id: ID
  /// The number of claimants in any state.
  var claimCount = 0
  var holders = Load()
  /// The claimants that have been called, while no claimant behind them is.
  var called = Load()
  /// The claimants that have been called and not started in time, by their queue or group, which is full or suspended.
  var passed: [ObjectIdentifier?: Set<KeyTicket>] = [:]
  var replacedCount = 0
  /// The waiting claimants, by the number of the innermost holder around them.
  private var waitQueues: [Int?: ArrayDeque<KeyTicket>] = [:]

  static var vacant: Self { Self(ID(domain: .shared, key: "")) }

  init(_ id: ID) { self.id = id }

  // MARK: Admitting

  var admitsMore: Bool { holders.sum < min(holders.smallestLimit, called.smallestLimit) - called.sum }

  /// Whether the holders admit another holder, or the holders and those that have been called before it.
  func admits(_ share: KeyEntry.Share, besideCalled: Bool) -> Bool {
    if !besideCalled { return holders.admits(share) }
    let free = min(share.limit, holders.smallestLimit, called.smallestLimit) - holders.sum
    // A sum may overflow, and so may a difference of negative numbers.
    return free > called.sum && share.weight <= free - called.sum
  }

  // MARK: Wait queues

  var hasWaiters: Bool { !waitQueues.isEmpty }

  var waiting: [KeyTicket] { waitQueues.values.flatMap { Array($0.all) } }

  /// The first claimants of all wait queues, in the order of their arrival.
  var firstWaiters: [KeyTicket] { waitQueues.values.compactMap(\.first).sorted() }

  func first(in waitQueue: Int?) -> KeyTicket? { hasWaiters ? waitQueues[waitQueue]?.first : nil }

  /// Adds a claimant behind all that arrived before it.
  mutating func wait(_ ticket: KeyTicket, in waitQueue: Int?) {
    waitQueues[waitQueue, default: ArrayDeque()].insert(ticket)
  }

  mutating func endWait(_ ticket: KeyTicket, in waitQueue: Int?) {
    waitQueues[waitQueue]?.remove(ticket)
    if waitQueues[waitQueue]?.isEmpty == true { waitQueues[waitQueue] = nil }
  }
}
