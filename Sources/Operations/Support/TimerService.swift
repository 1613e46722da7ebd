import Foundation

/// All timers on one of the system's clocks. They fire even while blocking work occupies every thread of the shared
/// pool, because the service runs on a serial Dispatch queue, which gets a thread at once, and adds due work to
/// ``DueWork``. Starting and cancelling a timer cost O(log n) and no system call, unless the timer is the next to fire.
///
/// Dispatch has no clock that equals the `ContinuousClock`: the uptime stops while the system sleeps, and the wall
/// clock can be set. A service whose clock counts sleep therefore has an alarm on both. When one fires, the service
/// checks its own clock and sets both. A timer is late only if the wall clock is set back during sleep.
final class TimerService: @unchecked Sendable {
  private struct State {
    var timers = DeadlineQueue<Duration, @Sendable () -> Void>()
    /// The time for which the alarms are set, or nil if they are not set. Cancelling a timer does not change it,
    /// because an unneeded wake-up costs less than setting the alarms for every timer.
    var armedTime: Duration?
  }

  private let time: ElapsedTime
  private let state = Locked(State())
  /// Not the default quality of service of a scheduler, because on Linux each quality of service has its own threads.
  private let queue = DispatchQueue(label: "Operations.TimerService", qos: .userInitiated)
  /// The alarms, which are set on the queue only.
  private let uptime: any DispatchSourceTimer
  private let wall: (any DispatchSourceTimer)?

  init(_ clock: any Clock<Duration>) {
    time = ElapsedTime(clock)
    uptime = DispatchSource.makeTimerSource(queue: queue)
    wall = clock is ContinuousClock ? DispatchSource.makeTimerSource(queue: queue) : nil
    for alarm in [uptime, wall].compactMap(\.self) {
      alarm.setEventHandler(handler: DispatchWorkItem { [unowned self] in wake() })
      alarm.schedule(deadline: .distantFuture)
      alarm.activate()
    }
  }

  func start(after delay: Duration, _ fire: @escaping @Sendable () -> Void) -> @Sendable () -> Void {
    let deadline = time.now + delay
    let (place, isNext) = state.withLock { state in
      let place = state.timers.add(fire, at: deadline)
      let isNext = state.armedTime.map { deadline < $0 } ?? true
      if isNext { state.armedTime = deadline }
      return (place, isNext)
    }
    if isNext { queue.async { self.setAlarms() } }
    // The closure is released after the lock.
    return { _ = self.state.withLock { $0.timers.remove(place) } }
  }

  private func wake() {
    let now = time.now
    let due = state.withLock { state in
      let due = state.timers.popAll(dueAt: now)
      state.armedTime = state.timers.earliest
      return due
    }
    DueWork.shared.add(due)
    setAlarms()
  }

  /// Runs on the queue, so that the last call sets the alarms to the newest time.
  private func setAlarms() {
    // An alarm that is left set has no effect when it fires.
    guard let deadline = state.withLock({ $0.armedTime }) else { return }
    // Dispatch's clocks cannot count as far as a `Duration`.
    let (seconds, attoseconds) = min(max(deadline - time.now, .zero), .seconds(86_400)).components
    // In two parts, because an `Int` on Apple Watch can have 32 bits.
    let whole = DispatchTimeInterval.seconds(Int(seconds))
    // Rounds up, because a wake-up that is too early has no effect.
    let rest = DispatchTimeInterval.nanoseconds(Int(attoseconds / 1_000_000_000) + 1)
    uptime.schedule(deadline: .now() + whole + rest, leeway: .milliseconds(1))
    wall?.schedule(wallDeadline: .now() + whole + rest, leeway: .milliseconds(1))
  }
}

/// An executor that runs the closures of due timers, in order. A burst takes one thread of a serial Dispatch queue. If
/// closures are left and none begins for 10 ms, the executor assumes that the thread is blocked, and adds a queue.
final class DueWork: TaskExecutor {
  static let shared = DueWork()

  private struct State {
    var works = ArrayDeque<@Sendable () -> Void>()
    /// The number of queues that are running closures.
    var runners = 0
    /// The number of closures that have begun since the next check was scheduled, or nil if none is scheduled.
    var begunBeforeCheck: Int?

    mutating func next() -> (@Sendable () -> Void)? {
      let next = works.popFirst()
      if next == nil { runners -= 1 } else { begunBeforeCheck? += 1 }
      return next
    }
  }

  private let state = Locked(State())
  private let watch = DispatchQueue(label: "Operations.DueWork.watch", qos: .userInitiated)

  func add(_ works: [@Sendable () -> Void]) {
    if works.isEmpty { return }
    let (addsRunner, addsCheck) = state.withLock { state in
      for work in works { state.works.append(work) }
      let (addsRunner, addsCheck) = (state.runners == 0, state.begunBeforeCheck == nil)
      if addsRunner { state.runners = 1 }
      if addsCheck { state.begunBeforeCheck = 0 }
      return (addsRunner, addsCheck)
    }
    if addsRunner { run() }
    if addsCheck { checkLater() }
  }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    add([{ unsafe job.runSynchronously(on: self.asUnownedTaskExecutor()) }])
  }

  private func run() {
    DispatchQueue(label: "Operations.DueWork", qos: .userInitiated).async { [self] in
      while let work = state.withLock({ $0.next() }) { withAutoreleasePool(work) }
    }
  }

  private func checkLater() {
    watch.asyncAfter(deadline: .now() + .milliseconds(10)) { [self] in
      let (addsRunner, addsCheck) = state.withLock { state in
        let isBlocked = !state.works.isEmpty && state.begunBeforeCheck == 0
        if isBlocked { state.runners += 1 }
        state.begunBeforeCheck = state.works.isEmpty ? nil : 0
        return (isBlocked, !state.works.isEmpty)
      }
      if addsRunner { run() }
      if addsCheck { checkLater() }
    }
  }
}
