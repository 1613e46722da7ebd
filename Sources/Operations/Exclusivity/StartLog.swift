import Foundation

/// The latest starts under a throttled key, as many as its largest count needs.
struct StartLog {
  struct Start {
    /// Increases with every start.
    let serial: Int
    let time: StartTime
  }

  private(set) var starts: [Start] = []
  private(set) var longestInterval = Duration.zero
  private var capacity = 0

  /// The start that must leave the window before another operation can start. Nil if the window has room.
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
    // Twice the capacity, so that removing costs each start one move.
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
