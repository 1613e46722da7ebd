import Foundation

/// All timers on one of the system's clocks.
///
/// Timers must fire even while blocking work occupies every thread of the shared pool. The service therefore runs on a
/// serial Dispatch queue, which gets a thread at once, and adds due work to ``DueWork``. Starting and cancelling a
/// timer cost O(log n) and no system call, unless the timer is the next to fire.
final class TimerService<ServiceClock: Clock<Duration>>: Sendable {
  private struct State {
    var timers = DeadlineQueue<ServiceClock.Instant, @Sendable () -> Void>()
    /// The time for which the alarms are set. Cancelling the timer for this time does not change the alarms. An
    /// unneeded wake-up costs less than setting the alarms whenever a timer is started and cancelled.
    var wakeUp: ServiceClock.Instant?
  }

  /// The longest delay of an alarm, because Dispatch's clocks cannot count as far as a `Duration`.
  private static var longestSleep: Duration { .seconds(86_400) }

  private let clock: ServiceClock
  private let state = Locked(State())
  /// The quality of service differs from the default of a scheduler, because on Linux each quality of service has its
  /// own threads.
  private let queue = DispatchQueue(label: "Operations.TimerService", qos: .userInitiated)
  private let alarms: Alarms

  /// - Parameters:
  ///   - clock: The clock that decides what is due.
  ///   - countsSleep: Whether the clock continues while the system sleeps.
  init(_ clock: ServiceClock, countsSleep: Bool) {
    self.clock = clock
    alarms = Alarms(on: queue, countsSleep: countsSleep)
    alarms.start { [unowned self] in wake() }
  }

  /// Calls `fire` after `delay`, unless the returned closure is called before that.
  func start(after delay: Duration, _ fire: @escaping @Sendable () -> Void) -> @Sendable () -> Void {
    let deadline = clock.now.advanced(by: delay)
    let (place, isNext) = state.withLock { state in
      let place = state.timers.place(at: deadline)
      state.timers.add(fire, at: place)
      let isNext = state.wakeUp.map { deadline < $0 } ?? true
      if isNext { state.wakeUp = deadline }
      return (place, isNext)
    }
    if isNext { queue.async { self.setAlarms() } }
    return {
      let fire = self.state.withLock { $0.timers.remove(place) }
      withExtendedLifetime(fire) {}
    }
  }

  private func wake() {
    let now = clock.now
    let due = state.withLock { state in
      let due = state.timers.popAll(dueAt: now)
      state.wakeUp = state.timers.earliest
      return due
    }
    DueWork.shared.add(due)
    setAlarms()
  }

  /// Sets the alarms. Must be called on the queue, so that the last call sets them to the newest time.
  private func setAlarms() {
    let wakeUp = state.withLock { $0.wakeUp }
    alarms.set(for: wakeUp.map { min(max(clock.now.duration(to: $0), .zero), Self.longestSleep) })
  }
}

/// The Dispatch timers behind a ``TimerService``.
///
/// Dispatch has no public clock that equals the `ContinuousClock`: the uptime stops while the system sleeps, and the
/// wall clock continues but can be set. A service whose clock counts sleep therefore has one timer of each kind. When
/// the first of them fires, the service checks its own clock, and sets both again if the timer was too early. A timer
/// is late only if the wall clock is set back while the system sleeps, and by no more than that.
///
/// The alarms must be set on the service's queue only.
private struct Alarms: @unchecked Sendable {
  private let uptime: any DispatchSourceTimer
  private let wall: (any DispatchSourceTimer)?

  init(on queue: DispatchQueue, countsSleep: Bool) {
    uptime = DispatchSource.makeTimerSource(queue: queue)
    wall = countsSleep ? DispatchSource.makeTimerSource(queue: queue) : nil
  }

  func start(_ body: @escaping @Sendable () -> Void) {
    for source in [uptime, wall].compactMap(\.self) {
      source.setEventHandler(handler: DispatchWorkItem(block: body))
      source.schedule(deadline: .distantFuture)
      source.activate()
    }
  }

  /// Sets the alarms.
  ///
  /// - Parameter delay: The time until the next timer. Nil if no timer is left.
  func set(for delay: Duration?) {
    guard let delay else {
      uptime.schedule(deadline: .distantFuture)
      wall?.schedule(wallDeadline: .distantFuture)
      return
    }
    let (seconds, attoseconds) = delay.components
    // Rounds up, because a wake-up that is too early has no effect.
    let nanoseconds = Int(seconds) * 1_000_000_000 + Int(attoseconds / 1_000_000_000) + 1
    uptime.schedule(deadline: .now() + .nanoseconds(nanoseconds), leeway: .milliseconds(1))
    wall?.schedule(wallDeadline: .now() + .nanoseconds(nanoseconds), leeway: .milliseconds(1))
  }
}

/// An executor that runs the closures of due timers, in order.
///
/// The closures may block, and must run even while every thread of the shared pool is blocked. The executor therefore
/// uses a serial Dispatch queue, which gets a thread at once. If the next closure has not begun after ``patience``, the
/// executor assumes that the thread is blocked, and adds another queue. A burst of timers therefore takes one thread,
/// and a closure that blocks delays the other timers by no more than ``patience``.
final class DueWork: TaskExecutor {
  static let shared = DueWork()
  private static let patience = DispatchTimeInterval.milliseconds(10)

  private struct State {
    var works = ArrayDeque<@Sendable () -> Void>()
    /// The total number of closures that have begun.
    var begun = 0
    /// The number of queues that are running closures.
    var runners = 0
    var isWatched = false
  }

  private let state = Locked(State())
  private let watch = DispatchQueue(label: "Operations.DueWork.watch", qos: .userInitiated)

  func add(_ works: [@Sendable () -> Void]) {
    if works.isEmpty { return }
    let (addsRunner, begun) = state.withLock { state -> (Bool, watchedSince: Int?) in
      for work in works { state.works.append(work) }
      let addsRunner = state.runners == 0
      if addsRunner { state.runners = 1 }
      defer { state.isWatched = true }
      return (addsRunner, state.isWatched ? nil : state.begun)
    }
    if addsRunner { run() }
    if let begun { check(since: begun) }
  }

  /// Adds a job of a task that waits on a custom clock.
  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    add([{ unsafe job.runSynchronously(on: self.asUnownedTaskExecutor()) }])
  }

  private func run() {
    DispatchQueue(label: "Operations.DueWork", qos: .userInitiated).async { [self] in
      while let work = next() { work() }
    }
  }

  private func next() -> (@Sendable () -> Void)? {
    state.withLock { state in
      let next = state.works.popFirst()
      if next == nil { state.runners -= 1 } else { state.begun += 1 }
      return next
    }
  }

  /// Adds a runner if closures are left and none has begun for ``patience``.
  private func check(since begun: Int) {
    watch.asyncAfter(deadline: .now() + Self.patience) { [self] in
      let (addsRunner, begun) = state.withLock { state -> (Bool, watchedSince: Int?) in
        if state.works.isEmpty {
          state.isWatched = false
          return (false, nil)
        }
        let addsRunner = state.begun == begun
        if addsRunner { state.runners += 1 }
        return (addsRunner, state.begun)
      }
      if addsRunner { run() }
      if let begun { check(since: begun) }
    }
  }
}
