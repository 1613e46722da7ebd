import Foundation

/// The window in which a number of operations may start under a key.
struct KeyThrottle {
  let count: Int
  let interval: Duration
  /// The number of the latest start that has left the window, on the clock of the waiting operation.
  var passedStart = -1
}

/// The start of an operation under throttled keys.
final class KeyStart: Sendable {
  let number: Int
  private let time = Locked<ElapsedTime?>(nil)

  init(number: Int) { self.number = number }

  /// The time since the start. Nil if the operation has not read its clock yet.
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
  /// The number of permits. Each of them counts as a start after ``starts``.
  var reservedStarts = 0
  /// The queues with an entry that waits for a window. It can start earlier if a permit ends unused.
  var blockedQueues: Set<KeyQueue.ID> = []

  func start(thatFills throttle: KeyThrottle) -> KeyStart? {
    let index = starts.count + reservedStarts - throttle.count
    return starts.indices.contains(index) ? starts[index] : nil
  }

  mutating func append(_ start: KeyStart, for throttles: [KeyThrottle]) {
    for throttle in throttles {
      capacity = max(capacity, throttle.count)
      longestInterval = max(longestInterval, throttle.interval)
    }
    starts.append(start)
    // The log grows to twice the capacity, so that removing old starts costs each start one move.
    if starts.count / 2 >= capacity { starts.removeFirst(starts.count - capacity) }
  }
}

extension KeyTable {
  /// Whether the windows of all throttles of an entry have room. Otherwise the entry waits until a start has left the
  /// full window, or until a permit ends.
  mutating func isOpen(_ ticket: Ticket, _ effects: inout [Effect]) -> Bool {
    if logs.isEmpty { return true }
    guard let entry = entries[ticket], let window = fullWindow(of: entry) else { return true }
    let claim = entry.claims[window.claim]
    let queue = queues[claim.queue].id
    logs[queue.outermost]?.blockedQueues.insert(queue)
    if let start = window.start {
      let interval = claim.throttles[window.throttle].interval
      let (claim, throttle) = (window.claim, window.throttle)
      let delay = Delay(ticket: ticket, claim: claim, throttle: throttle, interval: interval, start: start)
      effects.append(.wait(entry.claimant, delay))
    }
    return false
  }

  /// Returns the first full window of an entry, and the start that must leave it, unless permits have reserved all room.
  func fullWindow(of entry: Entry) -> (claim: Int, throttle: Int, start: KeyStart?)? {
    for (index, claim) in entry.claims.enumerated() where !claim.throttles.isEmpty {
      guard let log = logs[queues[claim.queue].id.outermost] else { continue }
      for (number, throttle) in claim.throttles.enumerated() {
        if log.reservedStarts >= throttle.count { return (index, number, nil) }
        guard let start = log.start(thatFills: throttle), start.number > throttle.passedStart else { continue }
        return (index, number, start)
      }
    }
    return nil
  }

  mutating func endDelay(_ delay: Delay, _ effects: inout [Effect]) {
    guard let entry = entries[delay.ticket], entry.state.isWaiting else { return }
    entries[delay.ticket]?.claims[delay.claim].throttles[delay.throttle].passedStart = delay.start.number
    queuesToServe += entry.claims.map(\.queue)
    serve(&effects)
  }

  mutating func noteStart(of entry: Entry, _ effects: inout [Effect]) {
    guard entry.claims.contains(where: { !$0.throttles.isEmpty }) else { return }
    let start = KeyStart(number: startCount)
    startCount += 1
    for claim in entry.claims where !claim.throttles.isEmpty {
      logs[queues[claim.queue].id.outermost, default: StartLog()].append(start, for: claim.throttles)
    }
    effects.append(.time(start, entry.claimant))
  }

  mutating func reserveStart(of entry: Entry) {
    for claim in entry.claims where !claim.throttles.isEmpty {
      logs[queues[claim.queue].id.outermost, default: StartLog()].reservedStarts += 1
    }
  }

  mutating func endReservation(of entry: Entry) {
    for claim in entry.claims where !claim.throttles.isEmpty {
      let id = queues[claim.queue].id.outermost
      logs[id]?.reservedStarts -= 1
      queuesToServe += logs[id]?.blockedQueues.compactMap { queueIndices[$0] } ?? []
      logs[id]?.blockedQueues = []
    }
  }

  /// Removes the logs of keys that are not in use, if the last start is still this one, which has left all windows. The
  /// caller releases the logs after releasing the lock.
  mutating func forget(_ lastStarts: [(id: KeyQueue.ID, start: KeyStart?)]) -> [StartLog] {
    lastStarts.compactMap { id, start in
      guard queueIndices[id] == nil, logs[id]?.starts.last === start else { return nil }
      return logs.removeValue(forKey: id)
    }
  }
}
