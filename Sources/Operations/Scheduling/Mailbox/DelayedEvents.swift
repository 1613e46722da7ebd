/// The delayed events of a scheduler, and the timer that fires for the first of them.
struct DelayedEvents {
  /// A replacement of the timer.
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

  /// Removes the events that are due, in order of their deadlines, after the timer has fired.
  ///
  /// A timer that was cancelled too late has an outdated generation, and removes nothing.
  mutating func popAll(dueAt time: Duration, _ generation: Int) -> [EventTicket] {
    guard generation == self.generation else { return [] }
    timer = nil
    timerDeadline = nil
    self.generation += 1
    return events.popAll(dueAt: time)
  }

  /// Returns the required replacement of the timer, or nil if the current timer is right.
  mutating func timerChange() -> Change? {
    if events.earliest == timerDeadline { return nil }
    timerDeadline = events.earliest
    generation += 1
    return Change(outdated: timer.take(), deadline: timerDeadline, generation: generation)
  }

  /// Records a timer that has been started.
  ///
  /// - Returns: False if the timer is outdated.
  mutating func noteTimer(_ timer: ClockTimer, _ generation: Int) -> Bool {
    guard generation == self.generation else { return false }
    self.timer = timer
    return true
  }
}
