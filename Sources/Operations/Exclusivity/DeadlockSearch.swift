/// A search for members of holders that wait, directly or indirectly, for a holder around them. The
/// entries are copied deeply. The search therefore needs no lock, and ThreadSanitizer reports no false race.
struct DeadlockSearch {
  private var entries: [KeyTicket: KeyEntry]
  private var loads: [Int: KeyUse.Load] = [:]
  /// The waiting entries, by use and by innermost holder.
  private var waitQueues: [Int: [Int?: ArrayDeque<KeyTicket>]] = [:]
  private var memberCounts: [KeyTicket: Int] = [:]

  init(_ entries: [KeyTicket: KeyEntry]) {
    self.entries = entries
    for (ticket, entry) in entries.sorted(by: { $0.key < $1.key }) {
      for group in entry.enclosing { memberCounts[group, default: 0] += 1 }
      for share in entry.shares {
        if entry.state.isHolding {
          loads[share.use, default: KeyUse.Load()].add(ticket, share)
        } else {
          waitQueues[share.use, default: [:]][entry.waitQueue, default: ArrayDeque()].append(ticket)
        }
      }
    }
  }

  /// Returns the last member that would wait forever. The order of waiting causes no deadlock, so each deadlock has one.
  func victim() -> KeyTicket? {
    var rest = self
    rest.finishAll()
    return rest.lastWaiterForOwnGroup()
  }

  /// Removes every entry that can finish. A holder finishes when it has no members left. A waiter has no members, so it
  /// finishes when it is first in its wait queues and its keys admit it. The remaining entries wait for each other.
  private mutating func finishAll() {
    var pending = Array(entries.keys)
    while let ticket = pending.popLast() {
      guard let entry = entries[ticket], canFinish(ticket, entry) else { continue }
      entries[ticket] = nil
      for share in entry.shares {
        if entry.state.isHolding {
          loads[share.use]?.remove(ticket, share)
          pending += waitQueues[share.use]?.values.compactMap(\.first) ?? []
        } else {
          waitQueues[share.use]?[entry.waitQueue]?.popFirst()
          if let first = waitQueues[share.use]?[entry.waitQueue]?.first { pending.append(first) }
        }
      }
      for group in entry.enclosing {
        memberCounts[group]? -= 1
        pending.append(group)
      }
    }
  }

  private func canFinish(_ ticket: KeyTicket, _ entry: KeyEntry) -> Bool {
    if entry.state.isHolding { return memberCounts[ticket] ?? 0 == 0 }
    return entry.shares.allSatisfy { waitQueues[$0.use]?[entry.waitQueue]?.first == ticket && isAdmitted($0) }
  }

  private func isAdmitted(_ share: KeyEntry.Share) -> Bool { loads[share.use]?.admits(share) ?? true }

  private func lastWaiterForOwnGroup() -> KeyTicket? {
    let waiters = entries.filter { !$1.state.isHolding && !$1.enclosing.isEmpty }.keys.sorted()
    var members: [KeyTicket: [KeyTicket]] = [:]
    for waiter in waiters {
      for group in entries[waiter]?.enclosing ?? [] { members[group, default: []].append(waiter) }
    }
    return waiters.last { waiter in
      var seen: Set<KeyTicket> = []
      var toVisit = [waiter]
      while let next = toVisit.popLast() {
        guard let entry = entries[next] else { continue }
        if next != waiter, entries[waiter]?.enclosing.contains(next) == true { return true }
        let following =
          entry.state.isHolding
          ? members[next] ?? []
          : entry.shares.filter { !isAdmitted($0) }.flatMap { loads[$0.use]?.tickets.sorted() ?? [] }
        toVisit += following.filter { seen.insert($0).inserted }
      }
      return false
    }
  }
}

extension KeyTable {
  /// Returns a search if one is due. It leaves out throttles, and claimants that have been called. Members of holders
  /// about to be cancelled are left to a later search.
  mutating func beginDeadlockSearch() -> DeadlockSearch? {
    guard beginSearch() else { return nil }
    var copies: [KeyTicket: KeyEntry] = [:]
    for entry in entries.all {
      if case .called = entry.state { continue }
      if entry.state == .waiting, entry.enclosing.contains(where: { isAboutToBeCancelled($0) }) {
        suspectDeadlock()
        continue
      }
      copies[entry.ticket] = KeyEntry(
        ticket: entry.ticket,
        shares: entry.shares.map { $0 },
        enclosing: entry.enclosing.map { $0 },
        waitQueue: entry.waitQueue,
        origin: nil,
        isStarted: entry.isStarted,
        state: entry.state
      )
    }
    return DeadlockSearch(copies)
  }

  private func isAboutToBeCancelled(_ ticket: Ticket) -> Bool {
    if case .replaced(let time) = state(of: ticket) { time > now } else { false }
  }

  /// Refuses a member that would wait forever. There may be another deadlock.
  mutating func refuse(_ ticket: Ticket, _ effects: inout [Effect]) {
    suspectDeadlock()
    guard let entry = self[ticket], entry.state == .waiting else { return }
    for share in entry.shares {
      let use = uses[share.use]
      if use.admits(share, besideCalled: false) { continue }
      let holder = use.holders.tickets.min().flatMap { claimant($0) }
      guard let waiter = claimant(ticket) else { return }
      return effects.append(.cancel(waiter, .deadlock(use.id.key, holder: holder)))
    }
  }
}
