import Foundation

/// Throttled keys: the windows in which operations start.
extension KeyTable {
  /// Returns whether the windows of all throttles of an entry have room.
  ///
  /// If a window is full, the entry waits until a start has left it, which takes a `Delay`, or until a reserved start
  /// has taken place or been given up.
  mutating func isOpen(_ ticket: Ticket, _ effects: inout Effects) -> Bool {
    guard let window = fullWindow(of: ticket) else { return true }
    if let delay = window.delay { effects.delayed.append(delay) }
    logs[window.log]?.blockedQueues.insert(window.queue)
    return false
  }

  /// A window that has no room for a start.
  struct FullWindow {
    let log: QueueID
    let queue: Int
    /// The delay until a start has left the window. Nil if permitted operations have reserved all of the room.
    var delay: Delay?
  }

  /// Returns the first window that has no room for the start of an entry.
  func fullWindow(of ticket: Ticket) -> FullWindow? {
    guard !ignoresThrottles, !logs.isEmpty, let entry = entries[ticket], entry.isThrottled else { return nil }
    for claim in entry.claims where !claim.throttles.isEmpty {
      let id = queues[claim.queue].id.outermost
      guard let log = logs[id] else { continue }
      for throttle in claim.throttles {
        if log.reservedStarts >= throttle.count { return FullWindow(log: id, queue: claim.queue) }
        guard let start = log.start(thatFills: throttle) else { continue }
        let window = Window(queue: claim.queue, throttle: throttle)
        if start.serial <= passedStarts[ticket]?[window] ?? -1 { continue }
        let delay = Delay(ticket: ticket, claimant: entry.claimant, window: window, start: start)
        return FullWindow(log: id, queue: claim.queue, delay: delay)
      }
    }
    return nil
  }

  /// Records that the start of a delay has left the window.
  mutating func endDelay(_ delay: Delay, _ effects: inout Effects) {
    guard let entry = entries[delay.ticket], entry.state == .waiting else { return }
    passedStarts[delay.ticket, default: [:]][delay.window] = delay.start.serial
    grantAll(startingWith: entry.claims, &effects)
  }

  /// Records the start of an entry in the logs of its throttled keys.
  mutating func noteStart(of ticket: Ticket) {
    guard !ignoresThrottles, let entry = entries[ticket], entry.isThrottled else { return }
    let start = StartLog.Start(serial: nextSerial, time: StartTime())
    for claim in entry.claims where !claim.throttles.isEmpty {
      logs[queues[claim.queue].id.outermost, default: StartLog()].append(start, for: claim.throttles)
    }
    entries[ticket]?.startTime = start.time
    nextSerial += 1
  }

  /// Reserves the start of an entry that has been permitted.
  mutating func reserveStart(of entry: Entry) {
    if ignoresThrottles { return }
    for claim in entry.claims where !claim.throttles.isEmpty {
      logs[queues[claim.queue].id.outermost, default: StartLog()].reservedStarts += 1
    }
  }

  /// Ends the reservation of a permitted entry, because its operation starts or because the permit is given back. Other
  /// entries may have waited for that.
  mutating func endReservation(of entry: Entry) {
    if ignoresThrottles { return }
    for claim in entry.claims where !claim.throttles.isEmpty {
      let id = queues[claim.queue].id.outermost
      logs[id]?.reservedStarts -= 1
      queuesToServe += logs[id]?.blockedQueues ?? []
      logs[id]?.blockedQueues = []
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
  /// The number of permitted operations that have not started. Each of them counts as the latest start.
  var reservedStarts = 0
  /// The queues in which an entry waits for a window. It may start earlier if a reserved start is given up.
  var blockedQueues: Set<Int> = []

  /// Returns the start that must leave the window before another operation can start, or nil if the window has room.
  func start(thatFills throttle: KeyThrottle) -> Start? {
    let index = starts.count + reservedStarts - throttle.count
    return starts.indices.contains(index) ? starts[index] : nil
  }

  mutating func append(_ start: Start, for throttles: [KeyThrottle]) {
    for throttle in throttles {
      capacity = max(capacity, throttle.count)
      longestInterval = max(longestInterval, throttle.interval)
    }
    starts.append(start)
    // The log grows to twice the capacity, so that removing old starts costs each start one move.
    if starts.count / 2 >= capacity { starts.removeFirst(starts.count - capacity) }
  }
}

/// The number of operations that may start under a key within an interval.
struct KeyThrottle: Hashable {
  let count: Int
  let interval: Duration
}

/// The time at which an operation started, on the operation's clock.
final class StartTime: Sendable {
  private let time = Locked<ElapsedTime?>(nil)

  /// The time since the start. Nil if the operation has not read its clock yet.
  var elapsed: Duration? { time.withLock { $0 }?.now }

  func set(on clock: any Clock<Duration>) {
    let now = ElapsedTime(clock)
    time.withLock { $0 = now }
  }
}
