import Foundation

/// When operations under a throttled key began: the latest, as many as the largest count needs.
struct StartLog {
  struct Start {
    /// Later starts have greater ones.
    let serial: Int
    let time: StartTime
  }

  private(set) var starts: [Start] = []
  private(set) var longestInterval = Duration.zero
  private var room = 0

  /// The start that must be out of the window before another operation may begin.
  func blocker(for throttle: KeyThrottle) -> Start? {
    let index = starts.count - throttle.count
    return index < 0 ? nil : starts[index]
  }

  mutating func append(_ start: Start, for throttle: KeyThrottle) {
    room = max(room, throttle.count)
    longestInterval = max(longestInterval, throttle.interval)
    starts.append(start)
    // Twice the room, so that this costs every start one move.
    if starts.count / 2 >= room { starts.removeFirst(starts.count - room) }
  }

  /// Forgets a start that has not come about.
  mutating func remove(_ serial: Int) { starts.removeAll { $0.serial == serial } }
}

/// How many operations may begin under a key within an interval.
struct KeyThrottle: Hashable {
  let count: Int
  let interval: Duration
}

/// When an operation began, by its own clock.
final class StartTime: Sendable {
  private let reading = Locked<(@Sendable () -> Duration)?>(nil)

  /// How long ago that was. Nil if the operation has been called and has not begun.
  var elapsed: Duration? { reading.withLock { $0 }?() }

  func note(on clock: some Clock<Duration>) {
    let now = clock.now
    reading.withLock { $0 = { now.duration(to: clock.now) } }
  }
}
