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

  /// Claimants that share the key, and the sum of their weights.
  struct Load {
    private struct Member: Comparable {
      let limit: Int
      let ticket: KeyTicket

      static func < (left: Self, right: Self) -> Bool { (left.limit, left.ticket) < (right.limit, right.ticket) }
    }

    private var members = ArrayDeque<Member>()
    private(set) var sum = 0

    var tickets: [KeyTicket] { members.all.map(\.ticket) }
    var count: Int { members.count }
    var smallestLimit: Int { members.first?.limit ?? .max }

    /// Compares without a sum, which may overflow.
    func admits(_ share: KeyEntry.Share) -> Bool { share.weight <= min(share.limit, smallestLimit) - sum }

    mutating func add(_ ticket: KeyTicket, _ share: KeyEntry.Share) {
      members.insert(Member(limit: share.limit, ticket: ticket))
      sum += share.weight
    }

    mutating func remove(_ ticket: KeyTicket, _ share: KeyEntry.Share) {
      members.remove(Member(limit: share.limit, ticket: ticket))
      sum -= share.weight
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
    return share.weight <= min(share.limit, holders.smallestLimit, called.smallestLimit) - holders.sum - called.sum
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
