import Foundation

/// The claimants that hold keys or wait for them. The first claimant that fits is next: its keys admit it, it comes
/// first in the wait queues of all of them, and its group has a slot. Claimants whose queue or group is full or
/// suspended yield to others, and keep their places. A member of a holder passes those that wait for this holder, so that
/// the order of waiting never causes a deadlock.
///
/// A member of a group is *called* when its turn comes, and its group decides whether it takes its keys, together with a
/// slot. Foundation decides when an operation of a queue starts, which is called as well, and takes its keys then.
struct KeyTable {
  typealias Ticket = KeyTicket
  typealias Entry = KeyEntry

  /// What the caller must do after releasing the lock, in the order of the effects.
  enum Effect {
    /// It is the claimant's turn. Unless its place has answered, it may be started, or take its keys with a slot.
    case call(KeyClaimant, isAnswered: Bool)
    /// A throttled claimant starts. The caller ends this start after an interval on the claimant's clock.
    case count(Start, KeyClaimant)
    case lend(UInt8, KeyClaimant)
    /// A member of a holder waits.
    case watch(KeyClaimant)
    case cancel(KeyClaimant, Refusal?)
    /// The caller calls ``KeyTable/timeDidPass(_:)`` after these milliseconds.
    case setTimer(Int)
    /// Keys that are no longer in use. They may hold the last references to objects of the program.
    case release(Any)
  }

  enum Refusal {
    case excluded(from: ExclusivityKey, by: KeyClaimant)
    case replaced(by: KeyClaimant)
    /// A holder around the claimant has a weaker claim to the key.
    case stronger(ExclusivityKey, holder: KeyClaimant?)
  }

  /// A start under a throttled key, which counts as a holder until it leaves the window, or a pause of a key.
  typealias Start = (ticket: Ticket, share: Entry.Share)

  typealias Change = (inout KeyTable, inout [Effect]) -> Void

  /// A call of an operation of a queue that has not been answered. Until this time, no claimant behind the called one is called.
  struct Call: Comparable {
    let until: Int
    let ticket: Ticket

    static func < (left: Self, right: Self) -> Bool { (left.until, left.ticket) < (right.until, right.ticket) }
  }

  /// The time in milliseconds, which the caller sets before each change.
  var now = 0
  /// When the next timer fires. A timer for a later time may fire as well.
  var timerTime: Int?
  /// The slots of the group whose lock the caller holds. A member whose turn comes takes its keys with one of them.
  var slots: (place: KeyPlace, free: Int, takers: [KeyClaimant]) = (.started, 0, [])
  /// The tasks of each key. Those that arrived first hold it, up to the limit, and the others wait. Usually there is one.
  var early: [(first: TaskKeys, others: [TaskKeys])] = []
  var entries = SlotList(vacant: KeyEntry.vacant)
  var claimants: [KeyClaimant?] = []
  var uses = SlotList(vacant: KeyUse.vacant)
  var useIndices: [KeyUse.ID: Int] = [:]
  var nextNumber = 0
  var calls = ArrayDeque<Call>()
  /// The called claimants that yield, by place.
  var yielding: [KeyPlace: ArrayDeque<Entry.Rank>] = [:]
  /// The uses in which others wait behind a claimant whose queue or group is not full or suspended, by place.
  var blocked: [KeyPlace: Set<Int>] = [:]
  /// The uses in which it may be the turn of another claimant.
  var usesToServe: [Int] = []

  subscript(ticket: Ticket) -> Entry? { entries.contains(ticket) ? entries[ticket.place] : nil }

  func state(of ticket: Ticket) -> KeyState? { entries.contains(ticket) ? entries[ticket.place].state : nil }

  func state(of claimant: KeyClaimant) -> KeyState? { claimant.ticket.flatMap { state(of: $0) } }

  func claimant(_ ticket: Ticket) -> KeyClaimant? { entries.contains(ticket) ? claimants[ticket.place] : nil }

  // MARK: Entering

  /// Returns the ticket of the next entry. A claimant that has one without an entry does not enter.
  mutating func makeTicket() -> Ticket {
    defer { nextNumber += 1 }
    return Ticket(number: nextNumber, place: entries.nextIndex)
  }

  /// Adds a claimant, which arrives at the wait queues of its keys, unless a policy drops it.
  mutating func enter(
    _ claimant: KeyClaimant,
    inside enclosing: [Ticket] = [],
    at place: KeyPlace = .started,
    priority: Int = 0,
    number: Int = 0,
    lent: UInt8 = 0,
    _ effects: inout [Effect]
  ) {
    if let refusal = refusal(of: claimant, inside: enclosing) {
      claimant.ticket = makeTicket()
      return effects.append(.cancel(claimant, refusal))
    }
    replaceOthers(for: claimant, inside: enclosing, &effects)
    let ticket = makeTicket()
    claimant.ticket = ticket
    let holder = enclosing.first { state(of: $0)?.isHolding == true }
    let rank = Entry.Rank(priority: priority, ticket: ticket)
    var entry = Entry(rank: rank, number: number, enclosing: enclosing, holder: holder, place: place, lent: lent)
    for claim in claimant.claims {
      let id = useID(of: claim, inside: enclosing)
      let share = Entry.Share(use: join(id), limit: claim.limit, weight: claim.weight, interval: claim.interval)
      entry.shares.append(share)
      if let lender = id.holder { entries[lender.place].loans += 1 }
    }
    if ticket.place == claimants.count { claimants.append(claimant) } else { claimants[ticket.place] = claimant }
    entries.insert(entry)
    wait(ticket, &effects)
    serve(&effects)
  }

  /// Returns the tickets of the claimants around some work, innermost first.
  func tickets(around work: Work) -> [Ticket] {
    if !work.isInsideOther { return [] }
    // Without this, n tasks in keys inside each other would look at n² claimants.
    if let keys = work.onlyCaller as? TaskKeys, let entry = keys.ticket.flatMap({ self[$0] }) {
      return [entry.ticket] + entry.enclosing.filter { entries.contains($0) }
    }
    return work.enclosing.compactMap(\.ticket)
  }

  /// The innermost enclosing holder of a key, and what it takes of the key. A throttle counts in the whole program.
  func lender(of claim: KeyClaim, inside enclosing: [Ticket]) -> (ticket: Ticket, share: Entry.Share)? {
    // A key that is in use inside a holder is also in use in the program.
    if claim.interval != nil || enclosing.isEmpty || useIndices[claim.id] == nil { return nil }
    // Not a lazy sequence, whose closures would copy the table.
    for ticket in enclosing where state(of: ticket)?.isHolding == true {
      if let share = share(of: ticket, claim.key, in: claim.domain) { return (ticket, share) }
    }
    return nil
  }

  /// Returns the use of the key among the members of the innermost enclosing holder of the key, or else in the program.
  func useID(of claim: KeyClaim, inside enclosing: [Ticket]) -> KeyUse.ID {
    let lender = lender(of: claim, inside: enclosing)?.ticket
    return KeyUse.ID(domain: claim.domain, key: claim.key, holder: lender, interval: claim.interval)
  }

  /// Why a claimant does not enter. A holder lends at most what it takes itself. An exclusive holder takes the whole key.
  func refusal(of claimant: KeyClaimant, inside enclosing: [Ticket]) -> Refusal? {
    for claim in claimant.claims {
      guard let (ticket, share) = lender(of: claim, inside: enclosing), share.limit > 1 else { continue }
      if claim.limit >= share.limit, claim.weight <= share.weight { continue }
      return .stronger(claim.key, holder: self.claimant(ticket))
    }
    for claim in claimant.claims where claim.policy == .drop {
      if let owner = self.claimant(of: useID(of: claim, inside: enclosing)) {
        return .excluded(from: claim.key, by: owner)
      }
    }
    return nil
  }

  mutating func join(_ id: KeyUse.ID) -> Int {
    let index = useIndices[id] ?? uses.nextIndex
    if index == uses.nextIndex {
      useIndices[id] = index
      uses.insert(KeyUse(id, limit: id.limit))
    }
    uses[index].claimCount += 1
    return index
  }

  mutating func replaceOthers(for claimant: KeyClaimant, inside enclosing: [Ticket], _ effects: inout [Effect]) {
    var replaced: [Ticket: ExclusivityPolicy] = [:]
    for claim in claimant.claims where claim.policy == .replace || claim.policy == .latest {
      guard let use = useIndices[useID(of: claim, inside: enclosing)].map({ uses[$0] }) else { continue }
      // Without this check, n claimants that replace each other would read n replaced holders each.
      let replacesHolders = claim.policy == .replace && use.replacedCount < use.holders.count
      for ticket in use.claimants + (replacesHolders ? use.holders.tickets : []) where replaced[ticket] != .replace {
        replaced[ticket] = claim.policy
      }
    }
    if replaced.isEmpty { return }
    var waiting: [Ticket] = []
    for (ticket, policy) in replaced.sorted(by: { $0.key > $1.key }) {
      guard let state = state(of: ticket), state != .replaced, state != .lending else { continue }
      let refusal = policy == .replace ? Refusal.replaced(by: claimant) : nil
      if let other = self.claimant(ticket) { effects.append(.cancel(other, refusal)) }
      if state.isHolding {
        entries[ticket.place].state = .replaced
        for share in entries[ticket.place].shares where share.interval == nil { uses[share.use].replacedCount += 1 }
      } else {
        waiting.append(ticket)
      }
    }
    remove(waiting, &effects)
  }

  /// Returns to the wait queues, at the place of the claimant's arrival, unless it takes its keys.
  mutating func comeBack(_ ticket: Ticket, at place: KeyPlace, _ effects: inout [Effect]) {
    guard let state = state(of: ticket) else { return }
    guard state == .away || (place == .started && !state.isHolding), !takeIfCalled(ticket, &effects) else { return }
    waitAgain(ticket, at: place, &effects)
  }
}
