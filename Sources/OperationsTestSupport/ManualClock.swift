import Operations

/// A clock that stands still until a test moves it.
///
/// ```swift
/// let clock = ManualClock()
/// operation.clock = clock
/// operation.timeout = .seconds(30)
/// queue.addOperation(operation)
/// await clock.waitForSleepers(1)
/// clock.advance(by: .seconds(30))
/// #expect(operation.isFinished)
/// ```
///
/// It can be moved half as far as a `Duration` reaches. What is for later than that never comes, as what is to happen
/// after the longest `Duration` there is.
///
/// What the package has to do at a certain time, such as a timeout or the end of a delay, is done by ``advance(by:)``,
/// and has been done when that returns. A task that sleeps on the clock is resumed by it, and goes on when it gets a
/// thread.
public final class ManualClock: Clock, Sendable {
  /// A time of a ``ManualClock``. Those of two clocks cannot be told apart, and mean nothing to each other.
  public struct Instant: InstantProtocol {
    /// The time since the clock was made.
    public let offset: Duration

    /// - Parameter offset: The time since the clock was made.
    public init(offset: Duration = .zero) { self.offset = offset }

    /// The time that is `duration` later, but no further than a `Duration` reaches: a time that is not meant to come
    /// does not overflow.
    public func advanced(by duration: Duration) -> Self { Self(offset: offset.adding(duration)) }

    /// How long it is from here to `other`; negative if that is earlier.
    public func duration(to other: Self) -> Duration { other.offset.subtracting(offset) }

    /// As far as a clock goes: so what is for later is always ahead of it.
    static let last = Self(offset: Duration(attoseconds: .max) / 2)

    public static func < (left: Self, right: Self) -> Bool { left.offset < right.offset }
  }

  /// Somebody who waits for a time.
  private typealias Sleeper = @Sendable (_ isCancelled: Bool) -> Void
  private typealias Sleepers = DeadlineQueue<Instant, Sleeper>

  private struct State {
    var now = Instant()
    /// Where the clock is being moved to.
    var goal = Instant()
    var sleepers = Sleepers()
    /// Those who wait until somebody sleeps.
    var watchers: [(count: Int, body: @Sendable () -> Void)] = []

    /// The next to be woken on the way to `time`, which is where the clock is then.
    mutating func next(until time: Instant) -> Sleeper? {
      let next = sleepers.popFirst(dueAt: time)
      now = max(now, next?.deadline ?? time)
      return next?.element
    }
  }

  private let state = Locked(State())

  /// A clock that stands at zero.
  public init() {}

  /// What the clock shows.
  public var now: Instant { state.withLock { $0.now } }

  /// Zero: it is moved by exactly what is said.
  public var minimumResolution: Duration { .zero }

  /// How many wait for a time to come: sleeping tasks, and whatever the package is to do at a time.
  public var sleepers: Int { state.withLock { $0.sleepers.count } }

  var nextDeadline: Instant? { state.withLock { $0.sleepers.earliest } }

  /// Moves the clock, and wakes everybody who is due: in order of time, and among those of one time in the order they
  /// asked.
  ///
  /// While somebody is woken the clock shows the time he asked for, so that what he then asks for counts from there,
  /// and is done too if it is due. No lock is held meanwhile.
  ///
  /// - Precondition: `duration` is not negative.
  public func advance(by duration: Duration) {
    refuseToGoBack(by: duration)
    move(
      to: state.withLock { state in
        // Several threads may be at it: each adds its part.
        state.goal = min(max(state.goal, state.now).advanced(by: duration), .last)
        return state.goal
      }
    )
  }

  func refuseToGoBack(by duration: Duration) {
    if duration < .zero { misuse("A clock cannot go back, by \(duration). Advance it, or make a new one.") }
  }

  /// Moves the clock to a time, as ``advance(by:)`` does.
  ///
  /// - Precondition: The time has not passed.
  public func advance(to time: Instant) {
    let now = now
    if time < now {
      misuse("A clock cannot go back, from \(now.offset) to \(time.offset). Advance it, or make a new one.")
    }
    move(to: time)
  }

  private func move(to time: Instant) {
    let time = min(time, .last)
    while let sleeper = state.withLock({ $0.next(until: time) }) { sleeper(false) }
  }

  /// Waits until so many wait for a time to come, without holding a thread.
  public func waitForSleepers(_ count: Int = 1) async {
    await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
      let isReached = state.withLock { state in
        if state.sleepers.count >= count { return true }
        state.watchers.append((count, { continuation.resume() }))
        return false
      }
      if isReached { continuation.resume() }
    }
  }

  /// Sleeps until the clock has been moved to `deadline`.
  ///
  /// - Throws: `CancellationError` if the task is cancelled before.
  public func sleep(until deadline: Instant, tolerance: Duration? = nil) async throws {
    let place = state.withLock { $0.sleepers.place(at: deadline) }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
        add(place) { isCancelled in
          continuation.resume(with: isCancelled ? .failure(CancellationError()) : .success(()))
        }
        // It was too early for the handler, which found nobody.
        if Task.isCancelled { cancel(place) }
      }
    } onCancel: {
      cancel(place)
    }
  }

  private func add(_ place: Sleepers.Place, _ sleeper: @escaping Sleeper) {
    let (isDue, watchers) = state.withLock { state -> (Bool, [(count: Int, body: @Sendable () -> Void)]) in
      if place.deadline <= state.now { return (true, []) }
      state.sleepers.add(sleeper, at: place)
      let count = state.sleepers.count
      defer { state.watchers.removeAll { $0.count <= count } }
      return (false, state.watchers.filter { $0.count <= count })
    }
    if isDue { sleeper(false) }
    for watcher in watchers { watcher.body() }
  }

  private func cancel(_ place: Sleepers.Place) { state.withLock { $0.sleepers.remove(place) }?(true) }
}

extension ManualClock: TimerClock {
  package func call(after delay: Duration, _ body: @escaping @Sendable () -> Void) -> @Sendable () -> Void {
    let place = state.withLock { $0.sleepers.place(at: $0.now.advanced(by: delay)) }
    add(place) { isCancelled in if !isCancelled { body() } }
    return { [weak self] in self?.cancel(place) }
  }
}
