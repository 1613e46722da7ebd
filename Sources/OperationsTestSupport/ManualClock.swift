public import Foundation
public import Operations

/// A clock that moves only when a test moves it.
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
/// The clock can reach half of the longest `Duration`. Work that is due later never runs.
///
/// ``advance(by:)`` does the timed work of the package, such as timeouts and the ends of delays, before it returns. It
/// also resumes the tasks that sleep on the clock. A resumed task continues when it gets a thread.
public final class ManualClock: Clock, TimerClock, Sendable {
  /// A time of a ``ManualClock``. Instants do not identify their clock, and instants of different clocks are unrelated.
  public struct Instant: InstantProtocol {
    /// The time since the clock was created.
    public let offset: Duration

    /// Creates an instant from the time since the clock was created.
    public init(offset: Duration = .zero) { self.offset = offset }

    /// Returns the instant that is `duration` later. The result is limited to the range of a `Duration`, so that the
    /// addition does not overflow.
    public func advanced(by duration: Duration) -> Self { Self(offset: offset.adding(duration)) }

    /// Returns the duration from this instant to `other`, which is negative if `other` is earlier.
    public func duration(to other: Self) -> Duration { other.offset.subtracting(offset) }

    static let last = Self(offset: Duration(attoseconds: .max) / 2)

    public static func < (left: Self, right: Self) -> Bool { left.offset < right.offset }
  }

  /// A sleeper with the closure to call when its deadline has been reached or its wait has been cancelled.
  private typealias Sleeper = (isTimeout: Bool, wake: @Sendable (_ isCancelled: Bool) -> Void)
  private typealias Sleepers = DeadlineQueue<Instant, Sleeper>

  private struct State {
    var now = Instant()
    /// The time to which the clock is being moved.
    var goal = Instant()
    var sleepers = Sleepers()
    /// The gates to open when there are that many sleepers.
    var gates: [Int: Gate] = [:]

    /// Removes the next sleeper due at `time`, and moves the clock to its deadline, or to `time` if there is none.
    mutating func next(until time: Instant) -> Sleeper? {
      let next = sleepers.earliest.flatMap { $0 <= time ? sleepers.popFirst() : nil }
      now = max(now, next?.deadline ?? time)
      return next?.element
    }
  }

  private let state = Locked(State())

  /// Creates a clock that shows zero.
  public init() {}

  /// The time that the clock shows.
  public var now: Instant { state.withLock { $0.now } }

  /// Zero, because the clock moves by exactly the requested duration.
  public var minimumResolution: Duration { .zero }

  /// The number of sleepers: tasks that sleep on the clock, and pending timed work of the package.
  public var sleepers: Int { state.withLock { $0.sleepers.count } }

  var nextDeadline: Instant? { state.withLock { $0.sleepers.earliest } }

  /// Moves the clock and wakes all sleepers that are due, in order of their deadlines. Sleepers with the same deadline
  /// are woken in the order in which they began to wait.
  ///
  /// While a sleeper is woken, the clock shows its deadline. A wait that begins meanwhile starts at that deadline, and
  /// ends in the same call if it is due. No lock is held while a sleeper is woken.
  ///
  /// - Precondition: `duration` is not negative.
  public func advance(by duration: Duration) {
    refuseToGoBack(by: duration)
    // Several threads may move the clock at the same time. Their durations add up.
    let goal = state.withLock { state in
      state.goal = min(max(state.goal, state.now).advanced(by: duration), .last)
      return state.goal
    }
    move(to: goal)
  }

  func refuseToGoBack(by duration: Duration) {
    if duration < .zero { misuse("A clock cannot go back, by \(duration.text). Advance it, or make a new one.") }
  }

  /// Moves the clock to a time, as ``advance(by:)`` does.
  ///
  /// - Precondition: The time has not passed.
  public func advance(to time: Instant) {
    refuseToGoBack(by: now.duration(to: time))
    move(to: time)
  }

  private func move(to time: Instant) {
    let time = min(time, .last)
    while let sleeper = state.withLock({ $0.next(until: time) }) { sleeper.wake(false) }
  }

  /// Moves the clock from deadline to deadline until an operation has finished or the task is cancelled.
  ///
  /// ```swift
  /// page.clock = clock
  /// page.timeout = .seconds(60)
  /// queue.addOperation(page)
  /// await clock.run(until: page)
  /// ```
  ///
  /// The clock moves when no sleeper has been added or removed for `grace`, or for ten times as long if the next deadline
  /// is the timeout of an operation. Work that needs longer between two sleeps can see a later deadline too early. While
  /// nothing sleeps on the clock, the call waits, and forever if the operation never finishes: give the test a time limit.
  ///
  /// - Parameters:
  ///   - operation: An operation of any kind that is in a queue or has been started.
  ///   - grace: The only real time in the test. It passes in ten parts, each of which is an operation in a queue, and is
  ///     therefore longer on a busy machine.
  public func run(until operation: Operation, grace: Duration = .milliseconds(20)) async {
    async let _ = run(until: { operation.isFinished }, grace: grace)
    await operation.finished()
  }

  /// Moves the clock from deadline to deadline until a condition is true or the task is cancelled.
  ///
  /// The clock moves as in the other method. The condition is evaluated at the beginning, and after each grace before
  /// the clock moves.
  public func run(until isReached: () async -> Bool, grace: Duration = .milliseconds(20)) async {
    var deadline: Instant?
    while await !isReached(), !Task.isCancelled {
      if let deadline { move(to: deadline) }
      deadline = await nextDeadline(after: grace)
    }
  }

  /// Returns the next deadline when the sleepers have not changed for `grace`, or nil if the task is cancelled.
  private func nextDeadline(after grace: Duration) async -> Instant? {
    var (quiet, last) = (0, snapshot)
    while quiet < (last.isTimeout ? 100 : 10) {
      // An operation waits for the same threads as the work under test.
      do { try await OperationQueue().run(DelayOperation(grace / 10)) } catch { return nil }
      let next = snapshot
      quiet = next == last ? quiet + 1 : 0
      last = next
    }
    return nextDeadline.flatMap { $0 > .last ? nil : $0 }
  }

  /// Two numbers that change whenever a sleeper is added or removed, and whether the next one is a timeout.
  private var snapshot: (added: Int, current: Int, isTimeout: Bool) {
    state.withLock { ($0.sleepers.numbersSoFar, $0.sleepers.count, $0.sleepers.first?.isTimeout ?? false) }
  }

  /// Waits until there are at least `count` sleepers or the waiting task is cancelled, without holding a thread.
  public func waitForSleepers(_ count: Int = 1) async {
    let gate = state.withLock { $0.sleepers.count < count ? $0.gates.gate(at: count) : nil }
    await gate?.opened()
  }

  /// Sleeps until the clock has been moved to `deadline`.
  ///
  /// - Throws: `CancellationError` if the task is cancelled before that.
  public func sleep(until deadline: Instant, tolerance: Duration? = nil) async throws {
    let place = state.withLock { $0.sleepers.place(at: deadline) }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
        add((false, { continuation.resume(with: $0 ? .failure(CancellationError()) : .success(())) }), at: place)
        // The handler may have run before the sleeper was added.
        if Task.isCancelled { cancel(place) }
      }
    } onCancel: {
      cancel(place)
    }
  }

  private func add(_ sleeper: Sleeper, at place: Sleepers.Place) {
    let (isDue, gate) = state.withLock { state -> (Bool, Gate?) in
      if place.deadline <= state.now { return (true, nil) }
      state.sleepers.add(sleeper, at: place)
      // The number of sleepers grows by one, so it reaches the number of each gate.
      return (false, state.gates.removeValue(forKey: state.sleepers.count))
    }
    if isDue { sleeper.wake(false) }
    gate?.open()
  }

  private func cancel(_ place: Sleepers.Place) { state.withLock { $0.sleepers.remove(place) }?.wake(true) }

  /// Moves the clock, and waits until the schedulers have run all due events, each at its time.
  ///
  /// ```swift
  /// let clock = ManualClock()
  /// let scheduler = SerialScheduler(name: "under test", clock: clock)
  /// scheduler.schedule(after: .seconds(60)) { refresh() }
  /// await clock.advance(by: .seconds(60), draining: scheduler)
  /// ```
  ///
  /// The clock stops at the deadline of each sleeper until the schedulers have nothing left to run. An event can
  /// schedule another event after a delay. The delay begins at the time of the first event, and the second event runs
  /// in the same call if it is due.
  ///
  /// If a scheduler is suspended, the call waits until the scheduler is resumed or the task is cancelled.
  ///
  /// - Precondition: `duration` is not negative.
  public func advance(by duration: Duration, draining first: SerialScheduler, _ others: SerialScheduler...) async {
    refuseToGoBack(by: duration)
    let schedulers = [first] + others
    let goal = min(now.advanced(by: duration), .last)
    repeat {
      await Self.settle(schedulers)
      advance(by: max(now.duration(to: min(nextDeadline ?? goal, goal)), .zero))
    } while now < goal
    await Self.settle(schedulers)
  }

  /// Waits until the schedulers have nothing left to run. One scheduler may have scheduled an event on another.
  private static func settle(_ schedulers: [SerialScheduler]) async {
    // What has begun on a scheduler since it was drained is neither queued nor necessarily over.
    var before: [Int]
    repeat {
      before = schedulers.map(\.begunSoFar)
      for scheduler in schedulers { await scheduler.drained() }
      // A cancelled task does not wait for a scheduler.
      if Task.isCancelled { return }
    } while before != schedulers.map(\.begunSoFar)
      || schedulers.contains { $0.statistics.eventsQueued + $0.statistics.jobsQueued > 0 }
  }
  package func call(
    after delay: Duration,
    isTimeout: Bool,
    _ body: @escaping @Sendable () -> Void
  ) -> @Sendable () -> Void {
    let place = state.withLock { $0.sleepers.place(at: $0.now.advanced(by: delay)) }
    add((isTimeout, { isCancelled in if !isCancelled { body() } }), at: place)
    return { [weak self] in self?.cancel(place) }
  }
}
