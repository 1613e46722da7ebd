import Foundation

/// The window in which a number of claimants may start under a key.
struct KeyThrottle {
  let count: Int
  let interval: Duration
  /// The number of the latest start that has left the window, on the clock of the waiting claimant.
  var passedStart = -1
}

/// The start of a claimant under throttled keys.
final class KeyStart: Sendable {
  let number: Int
  private let time = Locked<ElapsedTime?>(nil)

  init(number: Int) { self.number = number }

  /// The time since the start. Nil if the claimant has not read its clock yet.
  var elapsed: Duration? { time.withLock { $0 }?.now }

  func set(on clock: any Clock<Duration>) {
    let now = ElapsedTime(clock)
    time.withLock { $0 = now }
  }
}

/// The latest starts under a throttled key, as many as the largest count of its throttles.
struct StartLog {
  private(set) var starts: [KeyStart] = []
  private(set) var longestInterval = Duration.zero
  private var capacity = 0
  /// The number of claimants that have been called and not started. Each of them counts as a start after ``starts``.
  var calls = 0
  /// The holders in whose uses of the key a claimant waits for a window. It can start earlier if a call is not answered.
  var blockedHolders: Set<Int?> = []

  func start(thatFills throttle: KeyThrottle) -> KeyStart? {
    let index = starts.count + calls - throttle.count
    return starts.indices.contains(index) ? starts[index] : nil
  }

  /// Returns the starts that are not needed any more.
  mutating func append(_ start: KeyStart, for throttles: [KeyThrottle]) -> ArraySlice<KeyStart> {
    for throttle in throttles {
      capacity = max(capacity, throttle.count)
      longestInterval = max(longestInterval, throttle.interval)
    }
    starts.append(start)
    // The log grows to twice the capacity, so that removing old starts costs each start one move.
    if starts.count / 2 < capacity { return [] }
    defer { starts.removeFirst(starts.count - capacity) }
    return starts.prefix(starts.count - capacity)
  }
}

extension KeyTable {
  /// A start that must leave the window of a throttle before a claimant can be called.
  struct Delay {
    let ticket: Ticket
    /// The index of the use in the entry's list of throttled uses.
    let use: Int
    /// The index of the throttle of this use.
    let throttle: Int
    let interval: Duration
    let start: KeyStart
  }

  /// Whether the windows of all throttles of an entry have room. Otherwise the claimant waits until a start has left the
  /// full window, or until a call is not answered.
  mutating func isOpen(_ ticket: Ticket, _ effects: inout [Effect]) -> Bool {
    if logs.isEmpty { return true }
    let entry = entries[ticket.place]
    guard let window = fullWindow(of: entry) else { return true }
    let throttled = entry.throttled[window.use]
    let id = uses[throttled.use].id
    logs[id.outermost]?.blockedHolders.insert(id.holder)
    if let claimant = claimant(ticket), let start = window.start {
      let (use, throttle) = (window.use, window.throttle)
      let interval = throttled.throttles[throttle].interval
      effects.append(
        .wait(claimant, Delay(ticket: ticket, use: use, throttle: throttle, interval: interval, start: start))
      )
    }
    return false
  }

  /// Returns the first full window of an entry, and the start that must leave it, unless calls fill the window.
  func fullWindow(of entry: Entry) -> (use: Int, throttle: Int, start: KeyStart?)? {
    for (index, throttled) in entry.throttled.enumerated() {
      guard let log = logs[uses[throttled.use].id.outermost] else { continue }
      for (number, throttle) in throttled.throttles.enumerated() {
        if log.calls >= throttle.count { return (index, number, nil) }
        guard let start = log.start(thatFills: throttle), start.number > throttle.passedStart else { continue }
        return (index, number, start)
      }
    }
    return nil
  }

  /// Sets the timer of a claimant that still waits for this delay. Returns the timer that is no longer needed.
  mutating func set(_ timer: ClockTimer, for delay: Delay) -> ClockTimer? {
    guard state(of: delay.ticket) == .waiting else { return timer }
    defer { entries[delay.ticket.place].timer = timer }
    return entries[delay.ticket.place].timer
  }

  mutating func endDelay(_ delay: Delay, _ effects: inout [Effect]) {
    guard state(of: delay.ticket) == .waiting else { return }
    entries[delay.ticket.place].throttled[delay.use].throttles[delay.throttle].passedStart = delay.start.number
    usesToServe += entries[delay.ticket.place].shares.map(\.use)
    serve(&effects)
  }

  mutating func noteStart(of ticket: Ticket, _ effects: inout [Effect]) {
    if entries[ticket.place].throttled.isEmpty { return }
    let start = KeyStart(number: startCount)
    startCount += 1
    for throttled in entries[ticket.place].throttled {
      let id = uses[throttled.use].id.outermost
      let old = logs[id, default: StartLog()].append(start, for: throttled.throttles)
      if !old.isEmpty { effects.append(.release(old)) }
    }
    if let claimant = claimant(ticket) { effects.append(.time(start, claimant)) }
  }

  /// Records that a claimant was called or, with -1, that its call has ended.
  mutating func noteCall(of ticket: Ticket, _ change: Int) {
    for throttled in entries[ticket.place].throttled {
      let id = uses[throttled.use].id.outermost
      logs[id, default: StartLog()].calls += change
      if change > 0 { continue }
      let blocked = logs[id]?.blockedHolders ?? []
      usesToServe += blocked.compactMap { useIndices[KeyUse.ID(domain: id.domain, key: id.key, holder: $0)] }
      logs[id]?.blockedHolders = []
    }
  }

  /// Removes the logs of keys that are not in use, if the last start is still this one, which has left all windows. The
  /// caller releases the logs after releasing the lock.
  mutating func forget(_ lastStarts: [(id: KeyUse.ID, start: KeyStart?)]) -> [StartLog] {
    lastStarts.compactMap { id, start in
      guard useIndices[id] == nil, logs[id]?.calls == 0, logs[id]?.starts.last === start else { return nil }
      return logs.removeValue(forKey: id)
    }
  }
}
