/// Events for a time to come, and the one timer that wakes for the first of them.
struct DelayedEvents {
  /// What to do about the timer.
  struct Change {
    let outdated: ClockTimer?
    let deadline: Duration?
    let generation: Int
  }

  private var events = DeadlineQueue<Duration, EventTicket>()
  private var timer: ClockTimer?
  private var timerDeadline: Duration?
  private var generation = 0

  mutating func add(_ ticket: EventTicket, at deadline: Duration) {
    let place = events.place(at: deadline)
    ticket.place = .delayed(place)
    events.add(ticket, at: place)
  }

  mutating func remove(_ place: DeadlineQueue<Duration, EventTicket>.Place) -> EventTicket? { events.remove(place) }

  mutating func removeAll() -> [EventTicket] { events.removeAll() }

  /// Those that are due, in order. The timer has gone off, unless it is one that was cancelled too late.
  mutating func popAll(dueAt time: Duration, _ generation: Int) -> [EventTicket] {
    guard generation == self.generation else { return [] }
    timer = nil
    timerDeadline = nil
    self.generation += 1
    return events.popAll(dueAt: time)
  }

  /// Nil if the timer that there is will do.
  mutating func timerChange() -> Change? {
    if events.earliest == timerDeadline { return nil }
    timerDeadline = events.earliest
    generation += 1
    return Change(outdated: timer.take(), deadline: timerDeadline, generation: generation)
  }

  /// - Returns: Whether it is still the one that is wanted.
  mutating func noteTimer(_ timer: ClockTimer, _ generation: Int) -> Bool {
    guard generation == self.generation else { return false }
    self.timer = timer
    return true
  }
}
