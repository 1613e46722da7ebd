import Foundation
import Operations
import OperationsTestSupport
import Testing

/// A clock whose `sleep` throws.
private struct BrokenClock: Clock {
  var now: ContinuousClock.Instant { .now }
  var minimumResolution: Duration { .zero }
  func sleep(until deadline: ContinuousClock.Instant, tolerance: Duration?) async throws { throw TestError("broken") }
}

/// A clock that counts nanoseconds in 64 bits, as many do: it overflows after three hundred years.
private struct NarrowClock: Clock {
  struct Instant: InstantProtocol {
    var nanoseconds: Int64

    func advanced(by duration: Duration) -> Self {
      Self(nanoseconds: nanoseconds + duration.components.seconds * 1_000_000_000)
    }

    func duration(to other: Self) -> Duration { .nanoseconds(other.nanoseconds - nanoseconds) }

    static func < (left: Self, right: Self) -> Bool { left.nanoseconds < right.nanoseconds }
  }

  var now: Instant { Instant(nanoseconds: 1) }
  var minimumResolution: Duration { .nanoseconds(1) }

  /// Sleeps until the task is cancelled.
  func sleep(until deadline: Instant, tolerance: Duration?) async throws {
    try await ManualClock().sleep(for: .seconds(1))
  }
}

/// Numbers and times from beyond what makes sense, and odd uses of a scheduler: each has a defined, harmless meaning.
/// Those that are mistakes are in ``MisuseTests``.
@Suite(.timeLimit(.minutes(5)))
struct HostileNumberTests {
  private static let clocks: [any Clock<Duration>] = [
    ContinuousClock(), SuspendingClock(), ManualClock(), BrokenClock(),
  ]

  @Test(arguments: [Duration.longest, .seconds(Int64.max)])
  func aTimeoutThatNeverComesChangesNothing(_ timeout: Duration) async throws {
    for clock in Self.clocks + [NarrowClock()] {
      let operation = AsyncOperation()
      (operation.clock, operation.timeout) = (clock, timeout)
      try await OperationQueue().run(operation)
    }
  }

  @Test(arguments: [Duration.zero, .seconds(-1), .shortest])
  func aTimeoutThatHasPassedWhenItIsSetEndsTheExecution(_ timeout: Duration) async {
    for clock in Self.clocks {
      let operation = AsyncBlockOperation { $0.timeout = timeout }
      operation.clock = clock
      #expect(await ending(operation) == "timedOut")
    }
  }

  static let lines = [
    HostileCase("a delay on a clock that throws", gets: "success") {
      let delay = DelayOperation(.nanoseconds(1))
      delay.clock = BrokenClock()
      return await ending(delay)
    },
    HostileCase("the longest delay, at the end of time and beyond", gets: "executing, executing, true") {
      let clock = ManualClock()
      clock.advance(by: .seconds(5))
      let delays = [DelayOperation(.longest), DelayOperation(.seconds(1))]
      for (index, delay) in delays.enumerated() {
        delay.clock = clock
        OperationQueue().addOperation(delay)
        await clock.advance(by: .longest, sleepers: index + 1)
      }
      clock.advance(to: .init(offset: .longest))
      let states = delays.map { "\($0.state)" }.joined(separator: ", ")
      for delay in delays { delay.cancel() }
      return "\(states), \(clock.now.offset == .longest / 2)"
    },
    HostileCase("moments that are further apart than a Duration holds", gets: "true, true") {
      let (first, last) = (ManualClock.Instant(offset: .shortest), ManualClock.Instant(offset: .longest))
      return "\(first.duration(to: last) == .longest), \(last.duration(to: first) == .shortest)"
    },
    HostileCase("as many attempts as there are", gets: "100") {
      "\(try await OperationQueue().run(RetryOperation(attempts: .max, succeeding(at: 100))))"
    },
    HostileCase("a retry after the shortest time", gets: "2") {
      let retry = RetryOperation(attempts: 2, retryWhen: { _, _ in .retry(after: .shortest) }, succeeding(at: 2))
      return "\(try await OperationQueue().run(retry))"
    },
    HostileCase("the longest pauses, one that shrinks to nothing, and one left to chance", gets: "true, true, true") {
      let long = Backoff.exponential(initial: .seconds(1), multiplier: 1e300, cap: .longest)
      let short = Backoff.exponential(initial: .seconds(1), multiplier: 0.5, cap: .seconds(1))
      let random = Backoff.exponential(initial: .longest, multiplier: 1, cap: .longest, jitter: 1)
      let isInRange = (1...100).allSatisfy { random.delay(after: $0) >= .zero }
      return "\(long.delay(after: .max) == .longest), \(short.delay(after: .max) == .zero), \(isInRange)"
    },
    HostileCase("room for as many events as there are", gets: "400 run") {
      var run = 0
      for policy in EventCapacity.Policy.allCases {
        let scheduler = SerialScheduler(name: "vast", capacity: EventCapacity(.max, whenFull: policy))
        for _ in 0..<100 { scheduler.schedule {} }
        await scheduler.drained()
        run += scheduler.statistics.eventsRun
      }
      return "\(run) run"
    },
    HostileCase("members that weigh as much as there is", gets: "1.0") {
      let members = [AsyncOperation(), AsyncOperation(), AsyncOperation()]
      for member in members { member.progressWeight = .max }
      let group = GroupOperation(members + [GroupOperation([AsyncOperation()])])
      let progress = group.progress
      _ = await ending(group)
      return "\(progress.fractionCompleted)"
    },
    HostileCase("units of all sizes", gets: "1.0") {
      let units = [.min, -1, 0, 1, 7, Int64.max]
      for total in units {
        for completed in units {
          let group = GroupOperation([
            AsyncBlockOperation { operation in
              operation.progress.totalUnitCount = total
              operation.progress.completedUnitCount = completed
              for next in units { operation.progress.totalUnitCount = next }
              operation.finish()
            }
          ])
          let progress = group.progress
          _ = await ending(group)
          if progress.fractionCompleted != 1 { return "\(progress.fractionCompleted) for \(completed) of \(total)" }
        }
      }
      return "1.0"
    },
    HostileCase("a graph in which each takes the longest time", gets: "true") {
      let (first, last) = (AsyncOperation().named("a"), AsyncOperation().named("b"))
      first ==> last
      let graph = OperationGraph([last]).withDurations { _ in .longest }
      return "\(graph.criticalPath?.duration == .longest && !graph.mermaid().isEmpty && !graph.dot().isEmpty)"
    },
    HostileCase("a graph in which each takes less than nothing", gets: "0 s: ") {
      OperationGraph([AsyncOperation()]).withDurations { _ in .shortest }.criticalPath?.description ?? "none"
    },
    HostileCase("a timeline of no width, and of all", gets: "true, true, … and 1 more. timeline(lines: 1) draws all.") {
      let (tracer, operation) = (OperationTracer(), AsyncOperation())
      tracer.trace(operation)
      _ = await ending(operation)
      let lines = { (width: Int, lines: Int) in
        tracer.timeline(width: width, lines: lines).split(separator: "\n", omittingEmptySubsequences: false)
      }
      let narrow = lines(.min, .max).allSatisfy { $0.count <= 40 }
      let wide = lines(.max, .max).allSatisfy { $0.count <= 10_000 }
      return "\(narrow), \(wide), \(lines(40, .min).dropLast().last ?? "")"
    },
    HostileCase("an event for the end of time, cancelled, and one for a time long past", gets: "1 run, 0 dropped") {
      let scheduler = SerialScheduler(name: "s")
      scheduler.schedule(after: .longest) {}.cancel()
      scheduler.schedule(after: .shortest) {}
      await scheduler.drained()
      return "\(scheduler.statistics.eventsRun) run, \(scheduler.statistics.eventsDropped) dropped"
    },
    HostileCase("events for the end of time, and after", gets: "1 run") {
      let clock = ManualClock()
      clock.advance(by: .seconds(1))
      let scheduler = SerialScheduler(name: "s", clock: clock)
      scheduler.watchdog = SchedulerWatchdog(limit: .seconds(1)) { _ in }
      scheduler.schedule(after: .seconds(Int64.max)) {}
      scheduler.schedule(after: .longest) {}
      await clock.advance(by: .longest, draining: scheduler)
      scheduler.schedule(after: .seconds(1)) {}
      await clock.advance(by: .longest, draining: scheduler)
      defer { scheduler.shutDown() }
      return "\(scheduler.statistics.eventsRun) run"
    },
    HostileCase("an event that cancels itself, twice", gets: "1 run") {
      let clock = ManualClock()
      let scheduler = SerialScheduler(name: "s", clock: clock)
      let scheduled = Journal<ScheduledEvent>()
      scheduled.write(scheduler.schedule(after: .seconds(1)) { for event in scheduled.entries { event.cancel() } })
      await clock.advance(by: .seconds(1), draining: scheduler)
      for event in scheduled.entries { event.cancel() }
      return "\(scheduler.statistics.eventsRun) run"
    },
    HostileCase("an event cancelled when its scheduler has gone", gets: "nothing") {
      var scheduler: SerialScheduler? = SerialScheduler(name: "s")
      let event = scheduler?.schedule(after: .zero) {}
      await scheduler?.drained()
      scheduler = nil
      event?.cancel()
      return "nothing"
    },
    HostileCase("a gate that is opened twice, and from within", gets: "2 passed") {
      let (gate, passed) = (Gate(), Journal<Int>())
      gate.whenOpen {
        gate.open()
        gate.whenOpen { passed.write(2) }
        passed.write(1)
      }
      gate.open()
      gate.open()
      await gate.opened()
      return "\(passed.count) passed"
    },
    HostileCase("a clock that is moved by whom it wakes", gets: "3.0 seconds") {
      let (clock, delay) = (ManualClock(), DelayOperation(.seconds(1)))
      delay.clock = clock
      delay.addObserver(didFinish: { _ in clock.advance(by: .seconds(1)) })
      OperationQueue().addOperation(delay)
      await clock.advance(by: .seconds(2), sleepers: 1)
      return "\(clock.now.offset)"
    },
  ]

  @Test(arguments: lines) func getsWhatIsExpected(_ line: HostileCase) async { await line.check() }
}
