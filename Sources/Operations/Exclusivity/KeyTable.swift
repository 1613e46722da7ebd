/// Which operations hold which keys, and which wait for them: a value, without effects.
///
/// An operation stands in the lines of all its keys at once. It goes when it is first in each of them and each key
/// admits one more holder; then it holds all of them. So operations that wait for each other's turn never deadlock,
/// and none is starved.
///
/// An operation whose queue or group has yet to start it is *called*: the keys are reserved for it, and it holds them
/// when it *arrives*. If it does not arrive, because its queue is full or suspended, it is *late* and lets others go
/// first. An operation that has been started already is *in hand*: it holds the keys as soon as it may.
///
/// Time does not occur here, except as ``tick()``.
struct KeyTable<Claimant> {
  typealias Ticket = Int
  typealias Place = KeyLine.Place

  struct Demand {
    var place: Place
    var limit: Int
    var throttles: [KeyThrottle] = []
  }

  struct Applicant {
    let claimant: Claimant
    let demands: [Demand]
    /// The entries of the operations around it, from the innermost outwards.
    var outer: [Ticket] = []
    /// The queue or group that starts it. Nil if it is in hand.
    var home: ObjectIdentifier?
  }

  enum State: Hashable {
    case waiting
    case called
    case late
    case holding
  }

  struct Claim {
    let line: Int
    let limit: Int
    let throttles: [KeyThrottle]
    /// Where it is among the line's holders.
    var position = 0
  }

  struct Entry {
    let claimant: Claimant
    var claims: [Claim]
    let outer: [Ticket]
    let home: ObjectIdentifier?
    var state = State.waiting
    var isInHand: Bool
    var isPassing = false
    var isAside = false
    /// When it was called.
    var epoch = 0
    /// Holders whose members it lets pass, because it waits for those holders.
    var yieldsTo: Set<Ticket> = []
    /// Up to which start it knows that they have left its windows.
    var verified: [Window: Int] = [:]
    var startSerial: Int?
  }

  struct Window: Hashable {
    let line: Int
    let throttle: KeyThrottle
  }

  /// A start has to leave the window before the operation may go on.
  struct Delay {
    let ticket: Ticket
    let claimant: Claimant
    let window: Window
    let start: StartLog.Start
  }

  struct Step {
    let ticket: Ticket
    let claimant: Claimant
    /// Its queue or group starts it. Otherwise it holds its keys, and goes on.
    let isCalled: Bool
  }

  /// What the caller does when the lock is released.
  struct Effects {
    var steps: [Step] = []
    var delayed: [Delay] = []
    var refused: [Refusal] = []
  }

  /// An insider that would wait for ever.
  struct Refusal {
    let claimant: Claimant
    let key: ExclusivityKey
    let holder: Claimant?
  }

  var entries: [Ticket: Entry] = [:]
  var lines: [KeyLine?] = []
  var freeLines: [Int] = []
  var lineIndices: [Place: Int] = [:]
  var logs: [Place: StartLog] = [:]
  var nextTicket = 0
  var nextSerial = 0
  var epoch = 0
  var calledCount = 0
  var waitingCount = 0
  /// A member of a holder has begun to wait, or something has come to stand before one.
  var mayBeStuck = false
  /// Lines in which another entry may be the first now.
  var linesToServe: [Int] = []
  /// Deadlocks are looked for whatever the clocks say.
  var ignoresThrottles = false

  // MARK: Coming

  /// Where an operation stands that wants the key: among the members of the innermost holder of it around the operation.
  func place(of key: ExclusivityKey, in domain: ExclusivityDomain, inside outer: [Ticket]) -> Place {
    for ticket in outer {
      guard let entry = entries[ticket], entry.state == .holding else { continue }
      let holds = entry.claims.contains { claim in
        lines[claim.line].map { $0.place.key == key && $0.place.domain === domain } ?? false
      }
      if holds { return Place(domain: domain, key: key, holder: ticket) }
    }
    return Place(domain: domain, key: key)
  }

  /// Takes a place in all of its lines. Afterwards the entry holds its keys, is called, or waits.
  mutating func join(_ applicant: Applicant, _ effects: inout Effects) -> Ticket {
    let ticket = nextTicket
    nextTicket += 1
    let claims = applicant.demands.map { Claim(line: line(at: $0.place), limit: $0.limit, throttles: $0.throttles) }
    entries[ticket] = Entry(
      claimant: applicant.claimant,
      claims: claims,
      outer: applicant.outer,
      home: applicant.home,
      isInHand: applicant.home == nil
    )
    waitingCount += 1
    for claim in claims { lines[claim.line]?.claimCount += 1 }
    let isFree = claims.allSatisfy { claim in
      lines[claim.line].map { $0.passing.isEmpty && $0.waiting.isEmpty && $0.late.isEmpty && $0.admits(claim.limit) }
        ?? false
    }
    if isFree, isOpen(ticket, &effects) {
      take(ticket)
      return ticket
    }
    let passes = !applicant.outer.isEmpty && mayPass(ticket)
    if !applicant.outer.isEmpty { mayBeStuck = true }
    enqueue(ticket, passing: passes)
    // It may be the first, or stand before the others: they wait as before.
    if mayGo(ticket, &effects) { take(ticket) }
    serve([], &effects, newcomer: ticket)
    return ticket
  }

  mutating func line(at place: Place) -> Int {
    if let index = lineIndices[place] { return index }
    let index = freeLines.popLast() ?? lines.count
    if index == lines.count { lines.append(KeyLine(place)) } else { lines[index] = KeyLine(place) }
    lineIndices[place] = index
    return index
  }

  mutating func enqueue(_ ticket: Ticket, passing: Bool) {
    guard let claims = entries[ticket]?.claims else { return }
    entries[ticket]?.isPassing = passing
    for claim in claims {
      if passing { lines[claim.line]?.passing.append(ticket) } else { lines[claim.line]?.waiting.append(ticket) }
    }
  }

  /// Whether the first in one of its lines waits for an operation around the newcomer: all behind that one do.
  mutating func mayPass(_ ticket: Ticket) -> Bool {
    guard let entry = entries[ticket] else { return false }
    for claim in entry.claims {
      guard let front = front(of: claim.line), let other = entries[front] else { continue }
      for outer in entry.outer {
        if other.yieldsTo.contains(outer) { return true }
        guard let holder = entries[outer] else { continue }
        if holder.claims.contains(where: { held in other.claims.contains { $0.line == held.line } }) { return true }
      }
    }
    return false
  }

  // MARK: Going on

  /// The first that waits in a line. Those behind a late one in the same queue or group are put aside.
  mutating func front(of line: Int) -> Ticket? {
    while let ticket = lines[line]?.waiting.first {
      guard isWaiting(ticket, passing: false), let entry = entries[ticket] else {
        dropFirst(of: line, \.waiting)
        continue
      }
      guard let home = entry.home, !entry.isInHand, lines[line]?.late[home] != nil else { return ticket }
      lines[line]?.waiting.removeFirst()
      lines[line]?.aside[home, default: []].append(ticket)
      entries[ticket]?.isAside = true
      for claim in entry.claims where claim.line != line { linesToServe.append(claim.line) }
    }
    return nil
  }

  mutating func dropFirst(of line: Int, _ queue: WritableKeyPath<KeyLine, TicketQueue>) {
    lines[line]?[keyPath: queue].removeFirst()
    if let count = lines[line]?.staleCount, count > 0 { lines[line]?.staleCount = count - 1 }
  }

  /// Lets all go that can, beginning with those in these lines.
  mutating func serve(_ claims: [Claim], _ effects: inout Effects, newcomer: Ticket? = nil) {
    linesToServe += claims.map(\.line)
    while let line = linesToServe.popLast() {
      while let ticket = next(in: line, &effects) {
        take(ticket)
        guard let entry = entries[ticket] else { continue }
        // The caller tells a newcomer itself.
        if ticket != newcomer {
          effects.steps.append(Step(ticket: ticket, claimant: entry.claimant, isCalled: entry.state == .called))
        }
        for claim in entry.claims where claim.line != line { linesToServe.append(claim.line) }
      }
    }
  }

  /// An entry in the line that may go now.
  mutating func next(in line: Int, _ effects: inout Effects) -> Ticket? {
    trimPassing(of: line)
    guard let present = lines[line], present.admits(.max) else { return nil }
    // Those that pass do not wait for each other: the keys that one of them waits for may be held around another.
    for ticket in present.passing.all where isWaiting(ticket, passing: true) && mayGo(ticket, &effects) {
      return ticket
    }
    guard let ticket = front(of: line), mayGo(ticket, &effects) else { return nil }
    return ticket
  }

  mutating func trimPassing(of line: Int) {
    while let ticket = lines[line]?.passing.first, !isWaiting(ticket, passing: true) {
      dropFirst(of: line, \.passing)
    }
  }

  mutating func mayGo(_ ticket: Ticket, _ effects: inout Effects) -> Bool {
    guard let entry = entries[ticket], !entry.isAside else { return false }
    for claim in entry.claims {
      guard lines[claim.line]?.admits(claim.limit) == true else { return false }
      if entry.isPassing { continue }
      trimPassing(of: claim.line)
      guard lines[claim.line]?.passing.isEmpty == true, front(of: claim.line) == ticket else { return false }
    }
    return isOpen(ticket, &effects)
  }

  /// Gives an entry its keys, or reserves them for it.
  mutating func take(_ ticket: Ticket) {
    guard var entry = entries[ticket] else { return }
    entry.state = entry.isInHand ? .holding : .called
    entry.epoch = epoch
    (entry.isPassing, entry.isAside) = (false, false)
    waitingCount -= 1
    if !entry.isInHand { calledCount += 1 }
    for index in entry.claims.indices {
      let claim = entry.claims[index]
      entry.claims[index].position = lines[claim.line]?.holders.count ?? 0
      lines[claim.line]?.holders.append(ticket)
      lines[claim.line]?.add(claim.limit)
      // It was the first of those that wait, if it was among them.
      if lines[claim.line]?.waiting.first == ticket { lines[claim.line]?.waiting.removeFirst() }
    }
    entries[ticket] = entry
    noteStart(of: ticket)
  }

  func isWaiting(_ ticket: Ticket, passing: Bool) -> Bool {
    guard let entry = entries[ticket] else { return false }
    return entry.state == .waiting && entry.isPassing == passing && !entry.isAside
  }

  // MARK: Leaving

  /// Gives up what the entry holds, or its places.
  mutating func leave(_ ticket: Ticket, _ effects: inout Effects) {
    guard let entry = entries.removeValue(forKey: ticket) else { return }
    switch entry.state {
    case .waiting:
      waitingCount -= 1
      for claim in entry.claims where !entry.isAside { noteStale(in: claim.line) }
    case .late: endLateness(of: entry, adding: nil)
    case .called:
      calledCount -= 1
      forgetStart(of: entry)
      release(entry)
    case .holding: release(entry)
    }
    serve(entry.claims, &effects)
    for claim in entry.claims { leave(line: claim.line) }
    entries.giveBackRoom()
    lineIndices.giveBackRoom()
  }

  mutating func release(_ entry: Entry) {
    for claim in entry.claims {
      lines[claim.line]?.remove(claim.limit)
      guard let last = lines[claim.line]?.holders.popLast(), let count = lines[claim.line]?.holders.count else {
        continue
      }
      if claim.position == count { continue }
      lines[claim.line]?.holders[claim.position] = last
      if let index = entries[last]?.claims.firstIndex(where: { $0.line == claim.line }) {
        entries[last]?.claims[index].position = claim.position
      }
    }
  }

  mutating func noteStale(in index: Int) {
    guard let line = lines[index] else { return }
    lines[index]?.staleCount += 1
    guard line.staleCount >= 32, line.staleCount * 2 > line.passing.count + line.waiting.count else { return }
    let passing = line.passing.all.filter { isWaiting($0, passing: true) }
    let waiting = line.waiting.all.filter { isWaiting($0, passing: false) }
    lines[index]?.passing = TicketQueue(passing)
    lines[index]?.waiting = TicketQueue(waiting)
    lines[index]?.staleCount = 0
  }

  mutating func leave(line index: Int) {
    lines[index]?.claimCount -= 1
    guard let line = lines[index], line.claimCount == 0 else { return }
    lineIndices[line.place] = nil
    lines[index] = nil
    freeLines.append(index)
    if lineIndices.isEmpty { (lines, freeLines) = ([], []) }
  }
}

extension KeyTable.Delay: Sendable where Claimant: Sendable {}

extension KeyLine.Place {
  /// Where the windows of a throttle are: the same inside a holder and outside.
  var outermost: Self { holder == nil ? self : Self(domain: domain, key: key) }
}
