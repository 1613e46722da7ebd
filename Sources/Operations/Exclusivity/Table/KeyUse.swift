/// The claimants of a key in the program, or among the members of a holder, or the latest starts under a throttled key.
struct KeyUse {
  struct ID: Hashable {
    let domain: ExclusivityDomain
    let key: ExclusivityKey
    /// The entry whose members share the use. Nil for the use in the whole program.
    var holder: KeyTicket?
    /// The interval of a throttle, whose starts are counted apart.
    var interval: Duration?

    /// The limit that the domain sets, which does not count inside a holder.
    var limit: Int { holder == nil && interval == nil ? domain.limits[key] ?? .max : .max }

    static func == (left: Self, right: Self) -> Bool {
      left.domain === right.domain && left.holder == right.holder && left.interval == right.interval
        && left.key == right.key
    }

    func hash(into hasher: inout Hasher) {
      hasher.combine(ObjectIdentifier(domain))
      hasher.combine(key)
      if let holder { hasher.combine(holder) }
    }
  }

  /// Claimants that share the key, the sum of their weights, and their limits. Usually there is only one.
  struct Load {
    private var first: (ticket: KeyTicket, limit: Int)?
    private var others: Set<KeyTicket> = []
    /// The finite limits of the others, in ascending order.
    private var limits = ArrayDeque<Int>()
    /// Wider than a weight, because claimants that do not hold the key together may weigh more than an `Int`.
    private(set) var sum: Int128 = 0
    var limit: Int

    init(limit: Int = .max) { self.limit = limit }

    var tickets: [KeyTicket] { first(.max) }

    /// Returns up to `count` of the claimants.
    func first(_ count: Int) -> [KeyTicket] { (first.map { [$0.ticket] } ?? []) + others.prefix(count) }

    var count: Int { (first == nil ? 0 : 1) + others.count }
    var smallestLimit: Int { min(limit, first?.limit ?? .max, limits.first ?? .max) }

    func admits(_ share: KeyEntry.Share) -> Bool { sum + Int128(share.weight) <= min(share.limit, smallestLimit) }

    mutating func add(_ ticket: KeyTicket, _ share: KeyEntry.Share) {
      sum += Int128(share.weight)
      if first == nil {
        first = (ticket, share.limit)
        return
      }
      others.insert(ticket)
      if share.limit < .max { limits.insert(share.limit) }
    }

    mutating func remove(_ ticket: KeyTicket, _ share: KeyEntry.Share) {
      sum -= Int128(share.weight)
      if first?.ticket == ticket {
        first = nil
        return
      }
      others.remove(ticket)
      if share.limit < .max { limits.remove(share.limit) }
    }
  }

  /// Claimants of one place and priority that yield. None of them has a rank after the last one.
  struct Yielding {
    var load = Load()
    var last: KeyEntry.Rank

    mutating func add(_ share: KeyEntry.Share, _ rank: KeyEntry.Rank) {
      load.add(rank.ticket, share)
      last = max(last, rank)
    }
  }

  let id: ID
  /// The number of claimants in any state, and of starts.
  var claimCount = 0
  var holders: Load
  /// The claimants that have been called, while no claimant behind them is.
  var called = Load()
  /// The claimants that have been called and yield, by place and by priority.
  var yielding: [KeyPlace: [Int: Yielding]] = [:]
  /// The time until which claimants that are called are waited for, since the key has been free.
  var patienceEnd: Int?
  var away: Set<KeyTicket> = []
  var replacedCount = 0
  /// The rest of each pause, which counts as a holder whose limit is 0.
  var pauses: [KeyTicket: @Sendable () -> Duration] = [:]
  /// The priority that all holders have received from claimants that wait, or 0.
  var lent: UInt8 = 0
  /// The priorities that the claimants that wait lend to the holders, in ascending order, without 0.
  private(set) var lentToWaiting = ArrayDeque<UInt8>()
  /// For each waiting claim, the sum of the holders' weights beside which it may be admitted, in ascending order.
  private var tolerances = ArrayDeque<Int>()
  private var lines: [KeyEntry.Line: ArrayDeque<KeyEntry.Rank>] = [:]
  /// The first claimants of the lines.
  private(set) var heads = ArrayDeque<KeyEntry.Rank>()
  /// The number of lines inside a holder.
  private(set) var innerLineCount = 0

  static var vacant: Self { Self(ID(domain: .shared, key: "")) }

  init(_ id: ID, limit: Int = .max) {
    self.id = id
    holders = Load(limit: limit)
  }

  /// Whether the holders and the claimants that have been called admit another one, beside others that yield.
  @inline(__always)  // Otherwise each call would copy the use.
  func admits(_ share: KeyEntry.Share, beside yielding: [Load]) -> Bool {
    var limit = min(share.limit, holders.smallestLimit, called.smallestLimit)
    var sum = holders.sum + called.sum + Int128(share.weight)
    for load in yielding {
      limit = min(limit, load.smallestLimit)
      sum += load.sum
    }
    return sum <= limit
  }

  /// Whether a pause, or no more than the limit that was set, keeps a claim from the key.
  func restrains(_ share: KeyEntry.Share) -> Bool {
    var unlimited = holders
    unlimited.limit = .max
    return !pauses.isEmpty || !holders.admits(share) && unlimited.admits(share)
  }

  /// Whether the holders admit none of the claimants that wait.
  var isFull: Bool {
    guard let tolerance = tolerances.last else { return true }
    return holders.sum > tolerance || holders.sum >= holders.smallestLimit
  }

  var first: KeyTicket? { heads.first?.ticket }

  var waiting: [KeyTicket] { lines.values.flatMap { $0.all.compactMap { $0?.ticket } } }

  /// The claimants that hold nothing, in any state.
  var claimants: [KeyTicket] { waiting + called.tickets + yieldingTickets + away }

  var yieldingTickets: [KeyTicket] { yielding.values.flatMap { $0.values.flatMap(\.load.tickets) } }

  mutating func beginWait(of entry: KeyEntry, for share: KeyEntry.Share) {
    if entry.lent > 0 { lentToWaiting.insert(entry.lent) }
    tolerances.insert(share.limit - share.weight)
    change(entry.line) { $0.insert(entry.rank) }
  }

  mutating func endWait(of entry: KeyEntry, for share: KeyEntry.Share) {
    if entry.lent > 0 { lentToWaiting.remove(entry.lent) }
    tolerances.remove(share.limit - share.weight)
    change(entry.line) { $0.remove(entry.rank) }
  }

  private mutating func change(_ line: KeyEntry.Line, _ body: (inout ArrayDeque<KeyEntry.Rank>) -> Void) {
    // One access, because each one hashes the line.
    let (former, new) = lines[line, default: ArrayDeque()].changeFirst(body)
    if former == new { return }
    if let former { heads.remove(former) }
    if let new { heads.insert(new) } else { lines[line] = nil }
    if line.holder != nil { innerLineCount += (new == nil ? 0 : 1) - (former == nil ? 0 : 1) }
  }
}

extension ArrayDeque<KeyEntry.Rank> {
  @inline(__always)  // Otherwise the wait of a member with keys costs 700 instructions more.
  fileprivate mutating func changeFirst(_ body: (inout Self) -> Void) -> (former: Element?, new: Element?) {
    let former = first
    body(&self)
    return (former, first)
  }
}
