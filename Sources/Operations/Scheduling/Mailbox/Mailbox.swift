/// What a scheduler has accepted and not yet run, as a value.
///
/// It decides; ``SchedulerCore`` carries out, when the lock has been released. Bodies that are not to be run leave it
/// in an array, for they must neither be called nor released inside.
struct Mailbox {
  enum Phase { case open, draining, discarding }

  /// What has become of an event.
  enum Acceptance: Equatable {
    case accepted
    /// It waits until there is room.
    case suspended
    case shutDown
    case full
    /// It had been taken back before.
    case withdrawn
  }

  private(set) var phase = Phase.open
  /// The segment that is being added to; none if nothing has been posted since an operation was added to the queue.
  private(set) var open: MailboxSegment?
  /// Whether there is one: asked for every event, when counting a reference would cost as much as the rest.
  private(set) var isOpen = false
  /// What has come in for it.
  private var incoming: [MailboxEntry] = []
  /// About how many of that have been taken back.
  private var goneCount = 0
  private var segments: [ObjectIdentifier: MailboxSegment] = [:]
  /// Those that wait, also those that are not in a segment.
  private var tickets: [ObjectIdentifier: EventTicket] = [:]
  private var latest: [EventKey: EventTicket] = [:]
  private var room: EventRoom?
  var delays = DelayedEvents()

  /// Not counting those that were taken back or dropped.
  private(set) var eventsAccepted = 0
  private(set) var jobsAccepted = 0
  private(set) var eventsDropped = 0
  private(set) var eventsCoalesced = 0

  init(_ capacity: EventCapacity?) { room = capacity.map(EventRoom.init) }

  // MARK: Posting

  mutating func start(_ segment: MailboxSegment) {
    open = segment
    isOpen = true
    segments[ObjectIdentifier(segment)] = segment
  }

  /// From now on nothing is added to the segment, because an operation follows it.
  mutating func seal() {
    guard let open else { return }
    swap(&open.sealed, &incoming)
    close()
  }

  private mutating func close() {
    open = nil
    isOpen = false
    goneCount = 0
  }

  /// - Returns: Whether it has been accepted, or nil if a segment has to be opened first.
  @inline(__always)
  mutating func post(_ event: @escaping @Sendable () -> Void, _ origin: EventOrigin) -> Bool? {
    guard phase == .open else { return false }
    guard isOpen else { return nil }
    eventsAccepted += 1
    incoming.append(MailboxEntry(.event(event), origin))
    return true
  }

  /// - Returns: Whether there is a segment for it.
  @inline(__always)
  mutating func post(_ job: UnownedJob) -> Bool {
    guard isOpen else { return false }
    jobsAccepted += 1
    incoming.append(MailboxEntry(.job(job)))
    return true
  }

  mutating func mark(_ body: @escaping @Sendable () -> Void) { incoming.append(MailboxEntry(.mark(body))) }

  /// Takes an event in, if there is room. There has to be a segment, unless it is `handedOver` to a thread that waits.
  mutating func accept(
    _ ticket: EventTicket,
    _ body: @escaping EventTicket.Body,
    handedOver: Bool = false,
    dropping dropped: inout [EventTicket.Body]
  ) -> Acceptance {
    if ticket.isGone { return .withdrawn }
    guard phase == .open else {
      ticket.place = .gone
      return .shutDown
    }
    ticket.body = body
    if let key = ticket.key, let superseded = latest[key] {
      eventsCoalesced += 1
      // It takes over the room, too.
      dropped.append(contentsOf: withdraw(superseded).map { [$0] } ?? [])
    } else if ticket.isBounded, room != nil {
      switch room!.decide(about: ticket) {
      case .enter: break
      case .wait:
        ticket.place = .atDoor
        return .suspended
      case .refuse:
        _ = ticket.leave()
        eventsDropped += 1
        return .full
      case .replace(let other):
        eventsDropped += 1
        dropped.append(contentsOf: withdraw(other).map { [$0] } ?? [])
      }
    }
    enter(ticket, handedOver: handedOver)
    return .accepted
  }

  private mutating func enter(_ ticket: EventTicket, handedOver: Bool = false) {
    ticket.place = .waiting
    tickets[ObjectIdentifier(ticket)] = ticket
    if let key = ticket.key { latest[key] = ticket }
    if ticket.isBounded { room?.enter(ticket) }
    eventsAccepted += 1
    if !handedOver { append(ticket) }
  }

  /// Puts one that was to be handed over, and could not be, behind the others.
  mutating func append(_ ticket: EventTicket) {
    incoming.append(MailboxEntry(.ticket(ticket), ticket.origin))
  }

  // MARK: Times to come

  mutating func delay(_ ticket: EventTicket, _ body: @escaping EventTicket.Body, until deadline: Duration) {
    guard phase == .open else {
      ticket.place = .gone
      return noteRefused()
    }
    ticket.body = body
    delays.add(ticket, at: deadline)
  }

  /// Takes those in whose time has come, in order. There has to be a segment.
  mutating func acceptDue(at time: Duration, _ generation: Int) {
    guard phase == .open else { return }
    for ticket in delays.popAll(dueAt: time, generation) { enter(ticket) }
  }

  // MARK: Taking out

  /// Fills the batch with what there is in the segment.
  ///
  /// - Returns: False if that is nothing. Then the segment has been closed.
  mutating func refill(_ batch: inout MailboxBatch, from segment: MailboxSegment) -> Bool {
    if open === segment {
      goneCount = 0
      batch.exchange(with: &incoming)
      if batch.isEmpty { close() }
    } else {
      batch.exchange(with: &segment.sealed)
    }
    if batch.isEmpty { segments[ObjectIdentifier(segment)] = nil }
    return !batch.isEmpty
  }

  /// - Returns: What is to be run, unless it has been taken back.
  mutating func claim(_ ticket: EventTicket) -> EventTicket.Body? {
    ticket.isWaiting ? remove(ticket) : nil
  }

  /// Whether somebody could be let in.
  var hasRoomForWaiting: Bool { room?.hasRoomForWaiting == true }

  /// Lets those in who have waited for room. There has to be a segment.
  ///
  /// - Returns: Those who want to hear of it.
  mutating func admit() -> [@Sendable () -> Void] {
    var accepted: [@Sendable () -> Void] = []
    while let ticket = room?.next() {
      enter(ticket)
      if let onAccept = ticket.onAccept { accepted.append(onAccept) }
    }
    return accepted
  }

  // MARK: Taking back

  /// Takes an event back that has not begun.
  mutating func withdraw(_ ticket: EventTicket) -> EventTicket.Body? {
    switch ticket.place {
    case .waiting:
      eventsAccepted -= 1
      tidyUp()
      return remove(ticket)
    case .delayed(let place):
      _ = delays.remove(place)
      return ticket.leave()
    case .atDoor:
      let body = ticket.leave()
      room?.leaveDoor()
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
    if ticket.isBounded { room?.leave() }
    return body
  }

  /// What has been taken back keeps its entry until the drain comes upon it: in a storm that would be many.
  private mutating func tidyUp() {
    goneCount += 1
    guard goneCount >= 64, goneCount * 2 > incoming.count else { return }
    goneCount = 0
    incoming.removeAll { entry in if case .ticket(let ticket) = entry.work { !ticket.isWaiting } else { false } }
  }

  // MARK: Shutting down

  mutating func noteRefused() { eventsDropped += 1 }

  mutating func noteDropped(_ count: Int) {
    eventsAccepted -= count
    eventsDropped += count
  }

  /// From now on events are refused, and those for a time to come are dropped.
  ///
  /// - Returns: Those that are not going to be run, to be told and to be released.
  mutating func shutDown(discarding: Bool) -> (refused: [EventTicket.Body], released: [MailboxEntry]) {
    if phase == .open { phase = .draining }
    let late = delays.removeAll() + (room?.removeAllWaiting() ?? [])
    eventsDropped += late.count
    var refused = late.compactMap { $0.leave() }
    guard discarding, phase != .discarding else { return (refused, []) }
    phase = .discarding
    let waiting = tickets.values
    noteDropped(waiting.count)
    refused += waiting.compactMap { $0.leave() }
    tickets = [:]
    latest = [:]
    let released = incoming + segments.values.flatMap(\.sealed)
    incoming.removeAll { !$0.mustRun }
    for segment in segments.values { segment.sealed.removeAll { !$0.mustRun } }
    noteDropped(released.count { if case .event = $0.work { true } else { false } })
    return (refused, released)
  }
}
