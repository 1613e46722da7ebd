/// The events and jobs that a scheduler has accepted and not yet run, as a value. It returns the bodies of events that
/// will not run, because the caller must call or release them after releasing the lock. Each operation that is added to
/// the queue seals the open segment. Each segment has its own drain, so operations keep their place among the events.
struct Mailbox {
  enum Acceptance: Equatable {
    case accepted
    case suspended
    case shutDown
    case full
    case withdrawn
  }

  typealias Alarm = (deadline: Duration, timer: ClockTimer)

  /// Nil after a shutdown. First, because each event reads it.
  private var delayed: DeadlineQueue<Duration, EventTicket>? = DeadlineQueue()
  private var openSegment: Int?
  private var latestSegment = 0
  /// The entries of the open segment.
  private var entries: [Entry] = []
  /// The approximate number of withdrawn entries in the open segment.
  private var withdrawnCount = 0
  /// The entries of each sealed segment that has not begun to run.
  private var sealed: [Int: [Entry]] = [:]
  /// The tickets that wait to run, including those that were handed over to a blocked thread.
  private var tickets: [ObjectIdentifier: EventTicket] = [:]
  private var latest: [EventKey: EventTicket] = [:]
  private let capacity: EventCapacity?
  /// The number of waiting events that count toward the capacity.
  private var countedCount = 0
  /// These events in order, for the policies that drop one of them. Gone ones stay until they are skipped or compacted.
  private var counted = ArrayDeque<EventTicket>()
  /// The suspended events in order. All have the same deadline.
  private var suspended = DeadlineQueue<Duration, EventTicket>()
  private var alarm: Alarm?
  private var released: [Any] = []

  /// The number of accepted events, excluding those that were withdrawn or dropped.
  private(set) var eventsAccepted = 0
  private(set) var jobsAccepted = 0
  var eventsDropped = 0
  private(set) var eventsCoalesced = 0

  init(_ capacity: EventCapacity?) { self.capacity = capacity }

  var isShutDown: Bool { delayed == nil }

  // MARK: Segments

  var hasOpenSegment: Bool { openSegment != nil }

  /// Returns the number of the new segment.
  mutating func open() -> Int {
    latestSegment += 1
    openSegment = latestSegment
    return latestSegment
  }

  /// Returns whether the segment has entries.
  mutating func seal() -> Bool {
    withdrawnCount = 0
    guard let segment = openSegment.take(), !entries.isEmpty else { return false }
    sealed[segment] = exchange(&entries, with: [])
    return true
  }

  /// Fills the batch with the entries of the segment. If there are none, closes the segment and returns false.
  mutating func refill(_ batch: inout Batch, from segment: Int) -> Bool {
    if openSegment == segment {
      withdrawnCount = 0
      batch.exchange(with: &entries)
      if batch.isEmpty { openSegment = nil }
    } else if var entries = sealed.removeValue(forKey: segment) {
      batch.exchange(with: &entries)
    }
    return !batch.isEmpty
  }

  // MARK: Accepting

  /// Takes an event without a ticket. Returns nil if a segment must be opened first.
  @inline(__always)
  mutating func post(_ event: inout (@Sendable () -> Void)?, _ origin: EventOrigin) -> Bool? {
    if isShutDown { return false }
    guard hasOpenSegment, let accepted = event else { return nil }
    event = nil
    eventsAccepted += 1
    entries.append(.event(accepted, origin))
    return true
  }

  mutating func post(_ job: UnownedJob) {
    jobsAccepted += 1
    entries.append(.job(job))
  }

  /// Appends a mark, or the event of a wait that was accepted and could not be handed over to a blocked thread.
  mutating func append(_ entry: Entry) { entries.append(entry) }

  /// Takes an event if the scheduler accepts it or lets it wait for room. Returns the body of the event that the new one
  /// replaces, if any. There must be an open segment, unless the event is handed over to a blocked thread.
  mutating func accept(
    _ ticket: EventTicket,
    _ event: inout EventTicket.Body?,
    handedOver: Bool = false
  ) -> (acceptance: Acceptance, dropped: EventTicket.Body?) {
    guard !ticket.isGone, let body = event else { return (.withdrawn, nil) }
    if isShutDown {
      ticket.stage = .gone
      return (.shutDown, nil)
    }
    if let key = ticket.key, let superseded = latest[key] {
      // The new event uses the room and the place of the superseded one.
      eventsCoalesced += 1
      let dropped = superseded.leave()
      (superseded.origin, superseded.stage, event) = (ticket.origin, .waiting(body), nil)
      return (.accepted, dropped)
    }
    var dropped: EventTicket.Body?
    if ticket.isCounted, let capacity, countedCount >= capacity.count || suspended.count > 0 {
      // There is no room, or the event would overtake a suspended one.
      let replaced: EventTicket?
      switch capacity.policy {
      case .dropOldest: replaced = counted.popFirst { !$0.isGone }
      case .replaceLatest: replaced = counted.popLast { !$0.isGone }
      case .fail, .suspend:
        if capacity.policy == .suspend, case .suspending = ticket.capacity {
          ticket.stage = .suspended(suspended.add(ticket, at: .zero), body)
          event = nil
          return (.suspended, nil)
        }
        ticket.stage = .gone
        eventsDropped += 1
        return (.full, nil)
      }
      if let replaced {
        eventsDropped += 1
        dropped = withdraw(replaced)
      }
    }
    add(ticket, body, handedOver: handedOver)
    event = nil
    return (.accepted, dropped)
  }

  private mutating func add(_ ticket: EventTicket, _ body: @escaping EventTicket.Body, handedOver: Bool = false) {
    ticket.stage = .waiting(body)
    tickets[ObjectIdentifier(ticket)] = ticket
    if let key = ticket.key { latest[key] = ticket }
    if ticket.isCounted {
      countedCount += 1
      if capacity?.policy == .dropOldest || capacity?.policy == .replaceLatest { counted.append(ticket) }
    }
    eventsAccepted += 1
    if !handedOver { append(.ticket(ticket)) }
  }

  // MARK: Suspended events

  var canAcceptSuspended: Bool { suspended.count > 0 && countedCount < capacity?.count ?? 0 }

  /// Accepts suspended events as long as there is room, and returns their `onAccept` closures.
  mutating func acceptSuspended() -> [@Sendable () -> Void] {
    var notifications: [@Sendable () -> Void] = []
    while canAcceptSuspended, let ticket = suspended.popFirst()?.element, let body = ticket.leave() {
      add(ticket, body)
      if case .suspending(let onAccept?) = ticket.capacity { notifications.append(onAccept) }
    }
    return notifications
  }

  // MARK: Delayed events

  mutating func delay(_ ticket: EventTicket, _ body: @escaping EventTicket.Body, until deadline: Duration) {
    guard let place = delayed?.add(ticket, at: deadline) else {
      ticket.stage = .gone
      eventsDropped += 1
      return
    }
    ticket.stage = .delayed(place, body)
  }

  /// Accepts the due events after the timer has fired. A timer that was cancelled too late has no effect.
  mutating func acceptDue(at time: Duration, by timer: ClockTimer) {
    guard let due = alarm?.timer === timer ? delayed?.popAll(dueAt: time) : nil else { return }
    alarm = nil
    for ticket in due { if let body = ticket.leave() { add(ticket, body) } }
  }

  /// Returns the timer to cancel and the timer to start, or nil if the current timer is right.
  mutating func alarmChange() -> (outdated: ClockTimer?, new: Alarm?)? {
    let earliest = delayed?.earliest
    if earliest == alarm?.deadline { return nil }
    let outdated = alarm?.timer
    alarm = earliest.map { ($0, ClockTimer()) }
    return (outdated, alarm)
  }

  // MARK: Running and withdrawing

  /// Removes an event that is about to run. Returns its body, or nil if the event was withdrawn.
  mutating func claim(_ ticket: EventTicket) -> EventTicket.Body? { ticket.isWaiting ? remove(ticket) : nil }

  /// Removes an event that has not begun. Returns its body, or nil if the event is new or gone.
  mutating func withdraw(_ ticket: EventTicket) -> EventTicket.Body? {
    switch ticket.stage {
    case .waiting:
      eventsAccepted -= 1
      withdrawnCount += 1
      // A drain skips withdrawn entries until they are the majority.
      if withdrawnCount >= 64, withdrawnCount * 2 > entries.count {
        withdrawnCount = 0
        entries.removeAll { entry in if case .ticket(let ticket) = entry { !ticket.isWaiting } else { false } }
      }
      return remove(ticket)
    case .delayed(let place, _): _ = delayed?.remove(place)
    case .suspended(let place, _): _ = suspended.remove(place)
    case .new, .gone: break
    }
    return ticket.leave()
  }

  private mutating func remove(_ ticket: EventTicket) -> EventTicket.Body? {
    tickets[ObjectIdentifier(ticket)] = nil
    tickets.giveBackRoom()
    if let key = ticket.key {
      latest[key] = nil
      latest.giveBackRoom()
    }
    let body = ticket.leave()
    if ticket.isCounted {
      countedCount -= 1
      // Once they are the majority, removes the tickets that are gone, in amortized constant time for each ticket.
      if counted.count >= 64, counted.count > countedCount * 2 { counted.removeAll(where: \.isGone) }
    }
    return body
  }

  /// Takes a value that the scheduler releases. Returns whether it is the first one since ``takeReleased()``.
  mutating func release<Value>(_ value: inout Value?) -> Bool {
    if let value = value.take() { released.append(value) }
    return released.count == 1
  }

  mutating func takeReleased() -> [Any] { exchange(&released, with: []) }

  // MARK: Shutting down

  mutating func noteDropped(_ count: Int) {
    eventsAccepted -= count
    eventsDropped += count
  }

  /// Refuses all further events, and drops the delayed and suspended events. Discarding also drops the waiting events.
  /// Returns the bodies to call with a refusal, and the entries to release.
  mutating func shutDown(discarding: Bool) -> (refused: [EventTicket.Body], released: [Entry]) {
    let pending = (delayed?.removeAll() ?? []) + suspended.removeAll()
    delayed = nil
    eventsDropped += pending.count
    var refused = pending.compactMap { $0.leave() }
    if !discarding { return (refused, []) }
    let waiting = tickets.values
    noteDropped(waiting.count)
    refused += waiting.compactMap { $0.leave() }
    tickets = [:]
    latest = [:]
    let released = entries + sealed.values.flatMap(\.self)
    entries.removeAll { !$0.mustRun }
    sealed = sealed.mapValues { $0.filter(\.mustRun) }
    noteDropped(released.count { if case .event = $0 { true } else { false } })
    return (refused, released)
  }
}
