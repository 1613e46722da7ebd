/// The events and jobs that a scheduler has accepted and not yet run, as a value.
///
/// The mailbox only makes decisions. The caller carries them out after releasing the lock. The mailbox returns the
/// bodies of events that will not run, because the caller must neither call nor release them under the lock.
///
/// Entries are divided into segments. An operation that is added to the scheduler's queue seals the open segment, and
/// later entries go to a new one. Each segment has its own drain in the queue, so operations keep their place among the
/// events.
struct Mailbox {
  enum Phase { case open, draining, discarding }

  /// The result of adding an event.
  enum Acceptance: Equatable {
    case accepted
    /// The event waits for room.
    case suspended
    case shutDown
    case full
    /// The event was withdrawn before it was added.
    case withdrawn
  }

  private(set) var phase = Phase.open
  private var openSegment: Segment?
  /// Whether there is an open segment. The flag avoids retaining the segment, which would double the cost of an event.
  private(set) var hasOpenSegment = false
  /// The entries of the open segment.
  private var entries: [Entry] = []
  /// The approximate number of withdrawn entries in the open segment.
  private var withdrawnCount = 0
  /// The segments whose drains have not finished.
  private var segments: [ObjectIdentifier: Segment] = [:]
  /// The tickets that wait to run, including those that were handed over to a blocked thread.
  private var tickets: [ObjectIdentifier: EventTicket] = [:]
  /// The waiting event of each key.
  private var latest: [EventKey: EventTicket] = [:]
  private var room: EventRoom?
  var delays = DelayedEvents()

  /// The number of accepted events, excluding those that were withdrawn or dropped.
  private(set) var eventsAccepted = 0
  private(set) var jobsAccepted = 0
  private(set) var eventsDropped = 0
  private(set) var eventsCoalesced = 0

  init(_ capacity: EventCapacity?) { room = capacity.map(EventRoom.init) }

  // MARK: Segments

  mutating func open(_ segment: Segment) {
    openSegment = segment
    hasOpenSegment = true
    segments[ObjectIdentifier(segment)] = segment
  }

  /// Closes the open segment to new entries.
  mutating func seal() {
    guard let openSegment else { return }
    swap(&openSegment.sealed, &entries)
    closeSegment()
  }

  private mutating func closeSegment() {
    openSegment = nil
    hasOpenSegment = false
    withdrawnCount = 0
  }

  /// Fills the batch with the entries of the segment.
  ///
  /// - Returns: False if the segment is empty. It is closed in that case.
  mutating func refill(_ batch: inout Batch, from segment: Segment) -> Bool {
    if openSegment === segment {
      withdrawnCount = 0
      batch.exchange(with: &entries)
      if batch.isEmpty { closeSegment() }
    } else {
      batch.exchange(with: &segment.sealed)
    }
    if batch.isEmpty { segments[ObjectIdentifier(segment)] = nil }
    return !batch.isEmpty
  }

  // MARK: Accepting

  /// Adds an event that cannot be withdrawn and does not count toward the capacity.
  ///
  /// - Returns: Whether the event was accepted, or nil if a segment must be opened first.
  @inline(__always)
  mutating func post(_ event: @escaping @Sendable () -> Void, _ origin: EventOrigin) -> Bool? {
    guard phase == .open else { return false }
    guard hasOpenSegment else { return nil }
    eventsAccepted += 1
    entries.append(Entry(.event(event), origin))
    return true
  }

  /// Adds a job.
  ///
  /// - Returns: False if a segment must be opened first.
  @inline(__always)
  mutating func post(_ job: UnownedJob) -> Bool {
    guard hasOpenSegment else { return false }
    jobsAccepted += 1
    entries.append(Entry(.job(job)))
    return true
  }

  /// Adds a marker, which runs when all earlier entries have run.
  mutating func mark(_ body: @escaping @Sendable () -> Void) { entries.append(Entry(.mark(body))) }

  /// Adds an event if the scheduler accepts it.
  ///
  /// There must be an open segment, unless the event is handed over to a blocked thread.
  ///
  /// - Returns: The result, and the body of the event that the new one replaces, if any.
  mutating func accept(
    _ ticket: EventTicket,
    _ body: @escaping EventTicket.Body,
    handedOver: Bool = false
  ) -> (acceptance: Acceptance, dropped: EventTicket.Body?) {
    if ticket.isGone { return (.withdrawn, nil) }
    guard phase == .open else {
      ticket.place = .gone
      return (.shutDown, nil)
    }
    ticket.body = body
    var dropped: EventTicket.Body?
    if let key = ticket.key, let superseded = latest[key] {
      // The new event uses the room of the superseded one.
      eventsCoalesced += 1
      dropped = withdraw(superseded)
    } else if ticket.isBounded, room != nil {
      switch room!.decide(about: ticket) {
      case .accept: break
      case .suspend:
        ticket.place = .suspended
        return (.suspended, nil)
      case .refuse:
        _ = ticket.leave()
        eventsDropped += 1
        return (.full, nil)
      case .replace(let other):
        eventsDropped += 1
        dropped = withdraw(other)
      }
    }
    add(ticket, handedOver: handedOver)
    return (.accepted, dropped)
  }

  private mutating func add(_ ticket: EventTicket, handedOver: Bool = false) {
    ticket.place = .waiting
    tickets[ObjectIdentifier(ticket)] = ticket
    if let key = ticket.key { latest[key] = ticket }
    if ticket.isBounded { room?.addWaiting(ticket) }
    eventsAccepted += 1
    if !handedOver { append(ticket) }
  }

  /// Appends the entry of an accepted event. This may be an event that could not be handed over to a blocked thread.
  mutating func append(_ ticket: EventTicket) {
    entries.append(Entry(.ticket(ticket), ticket.origin))
  }

  // MARK: Suspended events

  var canAcceptSuspended: Bool { room?.canAcceptSuspended == true }

  /// Accepts suspended events as long as there is room. There must be an open segment.
  ///
  /// - Returns: The ``EventTicket/onAccept`` closures of the accepted events.
  mutating func acceptSuspended() -> [@Sendable () -> Void] {
    var notifications: [@Sendable () -> Void] = []
    while let ticket = room?.popSuspended() {
      add(ticket)
      if let onAccept = ticket.onAccept { notifications.append(onAccept) }
    }
    return notifications
  }

  // MARK: Delayed events

  mutating func delay(_ ticket: EventTicket, _ body: @escaping EventTicket.Body, until deadline: Duration) {
    guard phase == .open else {
      ticket.place = .gone
      return countDropped()
    }
    ticket.body = body
    delays.add(ticket, at: deadline)
  }

  /// Accepts the delayed events that are due, in order of their deadlines. There must be an open segment.
  mutating func acceptDue(at time: Duration, by timer: ClockTimer) {
    guard phase == .open else { return }
    for ticket in delays.popAll(dueAt: time, by: timer) { add(ticket) }
  }

  // MARK: Running and withdrawing

  /// Removes an event that is about to run.
  ///
  /// - Returns: The body to run, or nil if the event was withdrawn.
  mutating func claim(_ ticket: EventTicket) -> EventTicket.Body? {
    ticket.isWaiting ? remove(ticket) : nil
  }

  /// Removes an event that has not begun.
  ///
  /// - Returns: The body, or nil if the event is new or gone.
  mutating func withdraw(_ ticket: EventTicket) -> EventTicket.Body? {
    switch ticket.place {
    case .waiting:
      eventsAccepted -= 1
      noteWithdrawn()
      return remove(ticket)
    case .delayed(let place):
      _ = delays.remove(place)
      return ticket.leave()
    case .suspended:
      let body = ticket.leave()
      room?.removeSuspended()
      return body
    case .new, .gone: return ticket.leave()
    }
  }

  private mutating func remove(_ ticket: EventTicket) -> EventTicket.Body? {
    tickets[ObjectIdentifier(ticket)] = nil
    tickets.giveBackRoom()
    if let key = ticket.key, latest[key] === ticket {
      latest[key] = nil
      latest.giveBackRoom()
    }
    let body = ticket.leave()
    if ticket.isBounded { room?.removeWaiting() }
    return body
  }

  /// Records that an event was withdrawn, and removes withdrawn entries from the open segment once they are the
  /// majority. Until then a drain skips them.
  private mutating func noteWithdrawn() {
    withdrawnCount += 1
    guard withdrawnCount >= 64, withdrawnCount * 2 > entries.count else { return }
    withdrawnCount = 0
    entries.removeAll { entry in if case .ticket(let ticket) = entry.work { !ticket.isWaiting } else { false } }
  }

  // MARK: Shutting down

  mutating func countDropped() { eventsDropped += 1 }

  mutating func noteDropped(_ count: Int) {
    eventsAccepted -= count
    eventsDropped += count
  }

  /// Refuses all further events, and drops the delayed and suspended events.
  ///
  /// - Parameter discarding: Whether to drop the waiting events, too.
  /// - Returns: The bodies to call with a refusal, and the entries to release.
  mutating func shutDown(discarding: Bool) -> (refused: [EventTicket.Body], released: [Entry]) {
    if phase == .open { phase = .draining }
    let pending = delays.removeAll() + (room?.removeAllSuspended() ?? [])
    eventsDropped += pending.count
    var refused = pending.compactMap { $0.leave() }
    guard discarding, phase != .discarding else { return (refused, []) }
    phase = .discarding
    let waiting = tickets.values
    noteDropped(waiting.count)
    refused += waiting.compactMap { $0.leave() }
    tickets = [:]
    latest = [:]
    let released = entries + segments.values.flatMap(\.sealed)
    entries.removeAll { !$0.mustRun }
    for segment in segments.values { segment.sealed.removeAll { !$0.mustRun } }
    noteDropped(released.count { if case .event = $0.work { true } else { false } })
    return (refused, released)
  }
}
