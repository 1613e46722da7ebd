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
/// What the package has to do at a certain time, such as a timeout or the end of a delay, is done by ``advance(by:)``, and
/// has been done when that returns. A task that sleeps on the clock is resumed by it, and goes on when it gets a thread.
public final class ManualClock: Clock, Sendable {
  public struct Instant: InstantProtocol {
    /// The time since the clock was made.
    public let offset: Duration

    public init(offset: Duration = .zero) { self.offset = offset }

    public func advanced(by duration: Duration) -> Self { Self(offset: offset + duration) }

    public func duration(to other: Self) -> Duration { other.offset - offset }

    public static func < (left: Self, right: Self) -> Bool { left.offset < right.offset }
  }

  /// Somebody who waits for a time.
  private struct Sleeper {
    let deadline: Instant
    let number: Int
    let wake: @Sendable (_ isCancelled: Bool) -> Void

    func comes(before deadline: Instant, number: Int) -> Bool {
      (self.deadline, self.number) < (deadline, number)
    }
  }

  private struct State {
    var now = Instant()
    /// Where the clock is being moved to.
    var goal = Instant()
    /// In order of time, then of asking.
    var sleepers: [Sleeper] = []
    var sleepersSoFar = 0
    /// Those who wait until somebody sleeps.
    var watchers: [(count: Int, body: @Sendable () -> Void)] = []

    /// Where somebody belongs who asked as the `number`th for `deadline`.
    func position(of deadline: Instant, number: Int) -> Int {
      var (low, high) = (0, sleepers.count)
      while low < high {
        let middle = (low + high) / 2
        if sleepers[middle].comes(before: deadline, number: number) { low = middle + 1 } else { high = middle }
      }
      return low
    }

    mutating func remove(_ deadline: Instant, number: Int) -> Sleeper? {
      let position = position(of: deadline, number: number)
      guard position < sleepers.count, sleepers[position].number == number else { return nil }
      return sleepers.remove(at: position)
    }

    /// The next to be woken on the way to `time`, which is where the clock is then.
    mutating func next(until time: Instant) -> Sleeper? {
      guard let first = sleepers.first, first.deadline <= time else {
        now = max(now, time)
        return nil
      }
      now = max(now, first.deadline)
      return sleepers.removeFirst()
    }
  }

  private let state = Locked(State())

  public init() {}

  public var now: Instant { state.withLock { $0.now } }

  public var minimumResolution: Duration { .zero }

  /// How many wait for a time to come: sleeping tasks, and whatever the package is to do at a time.
  public var sleepers: Int { state.withLock { $0.sleepers.count } }

  /// Moves the clock, and wakes everybody who is due: in order of time, and among those of one time in the order they asked.
  ///
  /// While somebody is woken the clock shows the time he asked for, so that what he then asks for counts from there, and is
  /// done too if it is due. No lock is held meanwhile.
  ///
  /// - Precondition: `duration` is not negative.
  public func advance(by duration: Duration) {
    if duration < .zero { misuse("A clock cannot go back, by \(duration). Advance it, or make a new one.") }
    move(
      to: state.withLock { state in
        // Several threads may be at it: each adds its part.
        state.goal = max(state.goal, state.now).advanced(by: duration)
        return state.goal
      }
    )
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
    while let sleeper = state.withLock({ $0.next(until: time) }) { sleeper.wake(false) }
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
    let number = nextNumber()
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
        add(
          Sleeper(deadline: deadline, number: number) { isCancelled in
            continuation.resume(with: isCancelled ? .failure(CancellationError()) : .success(()))
          }
        )
        // It was too early for the handler, which found nobody.
        if Task.isCancelled { cancel(deadline, number: number) }
      }
    } onCancel: {
      cancel(deadline, number: number)
    }
  }

  private func nextNumber() -> Int {
    state.withLock { state in
      state.sleepersSoFar += 1
      return state.sleepersSoFar
    }
  }

  private func add(_ sleeper: Sleeper) {
    let (isDue, watchers) = state.withLock { state -> (Bool, [(count: Int, body: @Sendable () -> Void)]) in
      if sleeper.deadline <= state.now { return (true, []) }
      state.sleepers.insert(sleeper, at: state.position(of: sleeper.deadline, number: sleeper.number))
      let count = state.sleepers.count
      defer { state.watchers.removeAll { $0.count <= count } }
      return (false, state.watchers.filter { $0.count <= count })
    }
    if isDue { sleeper.wake(false) }
    for watcher in watchers { watcher.body() }
  }

  private func cancel(_ deadline: Instant, number: Int) {
    state.withLock { $0.remove(deadline, number: number) }?.wake(true)
  }
}

extension ManualClock: TimerClock {
  package func call(after delay: Duration, _ body: @escaping @Sendable () -> Void) -> @Sendable () -> Void {
    let number = nextNumber()
    let deadline = now.advanced(by: delay)
    add(Sleeper(deadline: deadline, number: number) { isCancelled in if !isCancelled { body() } })
    return { [weak self] in self?.cancel(deadline, number: number) }
  }
}
