import Foundation

/// Throttled keys: the windows in which operations start.
extension KeyTable {
  /// Returns whether the windows of all throttles of an entry have room. If a window is full, adds a `Delay` to the
  /// effects.
  func isOpen(_ ticket: Ticket, _ effects: inout Effects) -> Bool {
    guard !ignoresThrottles, !logs.isEmpty, let entry = entries[ticket] else { return true }
    for claim in entry.claims {
      for throttle in claim.throttles {
        guard let start = logs[queues[claim.queue].id.outermost]?.start(thatFills: throttle) else { continue }
        let window = Window(queue: claim.queue, throttle: throttle)
        if start.serial <= passedStarts[ticket]?[window] ?? -1 { continue }
        effects.delayed.append(Delay(ticket: ticket, claimant: entry.claimant, window: window, start: start))
        return false
      }
    }
    return true
  }

  /// Records that the start of a delay has left the window.
  mutating func endDelay(_ delay: Delay, _ effects: inout Effects) {
    guard let entry = entries[delay.ticket], entry.state == .waiting else { return }
    passedStarts[delay.ticket, default: [:]][delay.window] = delay.start.serial
    grantAll(startingWith: entry.claims, &effects)
  }

  /// Records the start of an entry in the logs of its throttled keys.
  mutating func noteStart(of ticket: Ticket) {
    guard !ignoresThrottles, let entry = entries[ticket], entry.startSerial == nil else { return }
    var start: StartLog.Start?
    for claim in entry.claims where !claim.throttles.isEmpty {
      let id = queues[claim.queue].id.outermost
      let new = start ?? StartLog.Start(serial: nextSerial, time: StartTime())
      start = new
      for throttle in claim.throttles { logs[id, default: StartLog()].makeRoom(for: throttle) }
      logs[id]?.append(new)
    }
    if start != nil {
      entries[ticket]?.startSerial = nextSerial
      nextSerial += 1
    }
  }

  /// Returns the time at which a throttled entry started. The operation sets this time.
  func startTime(of ticket: Ticket) -> StartTime? {
    guard let entry = entries[ticket], let serial = entry.startSerial else { return nil }
    for claim in entry.claims where !claim.throttles.isEmpty {
      let log = logs[queues[claim.queue].id.outermost]
      if let start = log?.starts.last(where: { $0.serial == serial }) { return start.time }
    }
    return nil
  }

  /// Removes the start of an entry that was permitted but not started.
  mutating func forgetStart(of entry: Entry) {
    guard let serial = entry.startSerial else { return }
    for claim in entry.claims where !claim.throttles.isEmpty {
      logs[queues[claim.queue].id.outermost]?.remove(serial)
    }
  }

  /// Forgets the starts under keys that are not in use.
  ///
  /// - Parameter lastSerials: The keys, each with the serial number of its last start, which has left all windows.
  /// - Returns: The forgotten logs. The caller releases them after releasing the lock.
  mutating func forget(_ lastSerials: [QueueID: Int]) -> [StartLog] {
    lastSerials.compactMap { id, serial in
      guard queueIndices[id] == nil, logs[id]?.starts.last?.serial ?? serial == serial else { return nil }
      return logs.removeValue(forKey: id)
    }
  }
}

/// The latest starts under a throttled key, as many as the largest count of its throttles.
struct StartLog {
  struct Start {
    /// Increases with every start.
    let serial: Int
    let time: StartTime
  }

  private(set) var starts: [Start] = []
  private(set) var longestInterval = Duration.zero
  private var capacity = 0

  /// Returns the start that must leave the window before another operation can start, or nil if the window has room.
  func start(thatFills throttle: KeyThrottle) -> Start? {
    let index = starts.count - throttle.count
    return index < 0 ? nil : starts[index]
  }

  mutating func makeRoom(for throttle: KeyThrottle) {
    capacity = max(capacity, throttle.count)
    longestInterval = max(longestInterval, throttle.interval)
  }

  mutating func append(_ start: Start) {
    starts.append(start)
    // The log grows to twice the capacity, so that removing old starts costs each start one move.
    if starts.count / 2 >= capacity { starts.removeFirst(starts.count - capacity) }
  }

  /// Removes a start that did not take place.
  mutating func remove(_ serial: Int) { starts.removeAll { $0.serial == serial } }
}

/// The number of operations that may start under a key within an interval.
struct KeyThrottle: Hashable {
  let count: Int
  let interval: Duration
}

/// The time at which an operation started, on the operation's clock.
final class StartTime: Sendable {
  private let time = Locked<ElapsedTime?>(nil)

  /// The time since the start. Nil if the operation is permitted and has not started.
  var elapsed: Duration? { time.withLock { $0 }?.now }

  func set(on clock: any Clock<Duration>) {
    let now = ElapsedTime(clock)
    time.withLock { $0 = now }
  }
}
