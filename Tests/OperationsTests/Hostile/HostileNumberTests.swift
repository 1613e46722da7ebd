import Foundation
import Operations
import OperationsTestSupport
import Testing

/// A clock on which nobody can sleep.
private struct BrokenClock: Clock {
  var now: ContinuousClock.Instant { .now }
  var minimumResolution: Duration { .zero }
  func sleep(until deadline: ContinuousClock.Instant, tolerance: Duration?) async throws { throw TestError("broken") }
}

/// An operation that gives itself this timeout when it executes, and never finishes.
private func lateTimeout(_ timeout: Duration, _ clock: any Clock<Duration>) -> AsyncOperation {
  let operation = AsyncBlockOperation { $0.timeout = timeout }
  operation.clock = clock
  return operation
}

private func timed(_ timeout: Duration, _ operation: AsyncOperation = AsyncOperation()) -> AsyncOperation {
  operation.timeout = timeout
  return operation
}

/// Numbers and times from beyond what makes sense: each has a defined, harmless meaning. Those that are mistakes are in
/// ``HostileTrapTests``.
@Suite(.timeLimit(.minutes(5)))
struct HostileNumberTests {
  static let timeouts = [
    HostileCase("a timeout of nothing", gets: "timedOut") { await ending(timed(.zero)) },
    HostileCase("a negative timeout", gets: "timedOut") { await ending(timed(.seconds(-1))) },
    HostileCase("the shortest timeout", gets: "timedOut") { await ending(timed(.shortest)) },
    HostileCase("the longest timeout", gets: "success") { await ending(timed(.longest)) },
    HostileCase("as many seconds as there are", gets: "success") { await ending(timed(.seconds(Int64.max))) },
    HostileCase("a group's negative timeout", gets: "timedOut") { await ending(timed(.shortest, GroupOperation([]))) },
    HostileCase("the longest timeout on a clock that throws", gets: "success") {
      let operation = timed(.longest)
      operation.clock = BrokenClock()
      return await ending(operation)
    },
    HostileCase("the shortest timeout while it executes", gets: "timedOut") {
      await ending(lateTimeout(.shortest, ContinuousClock()))
    },
    HostileCase("the shortest timeout on a suspending clock", gets: "timedOut") {
      await ending(lateTimeout(.shortest, SuspendingClock()))
    },
    HostileCase("the shortest timeout on a manual clock", gets: "timedOut") {
      await ending(lateTimeout(.shortest, ManualClock()))
    },
    HostileCase("a negative timeout on a clock that throws", gets: "timedOut") {
      await ending(lateTimeout(.seconds(-1), BrokenClock()))
    },
  ]

  static let delays = [
    HostileCase("the shortest delay", gets: "success") { await ending(DelayOperation(.shortest)) },
    HostileCase("a delay of nothing", gets: "success") { await ending(DelayOperation(.zero)) },
    HostileCase("a delay on a clock that throws", gets: "success") {
      let delay = DelayOperation(.nanoseconds(1))
      delay.clock = BrokenClock()
      return await ending(delay)
    },
    HostileCase("the longest delay, cancelled when it executes", gets: "cancelled") {
      let delay = DelayOperation(.longest)
      delay.addObserver(OperationObserver(didStart: { $0.cancel() }))
      return await ending(delay)
    },
    HostileCase("a delay of a century, moved by less and then by more", gets: "executing, finished") {
      let clock = ManualClock()
      let delay = DelayOperation(.seconds(3_155_760_000))
      delay.clock = clock
      OperationQueue().addOperation(delay)
      await clock.waitForSleepers()
      clock.advance(by: .seconds(3_000_000_000))
      let before = delay.state
      clock.advance(by: .longest)
      return "\(before), \(delay.state)"
    },
    HostileCase("the longest delay, at the end of time", gets: "executing, executing") {
      let clock = ManualClock()
      clock.advance(by: .seconds(5))
      let delays = [DelayOperation(.longest), DelayOperation(.seconds(1))]
      for delay in delays { delay.clock = clock }
      OperationQueue().addOperation(delays[0])
      await clock.waitForSleepers()
      clock.advance(by: .longest)
      OperationQueue().addOperation(delays[1])
      await clock.waitForSleepers(2)
      clock.advance(by: .longest)
      let states = "\(delays[0].state), \(delays[1].state)"
      for delay in delays { delay.cancel() }
      return states
    },
    HostileCase("a clock that is moved to the end, twice, and beyond", gets: "true, true") {
      let clock = ManualClock()
      clock.advance(by: .longest)
      clock.advance(by: .longest)
      let end = clock.now
      clock.advance(to: .init(offset: .longest))
      return "\(end.offset == .longest / 2), \(clock.now == end)"
    },
    HostileCase("a delay of as many seconds as there are, which are over", gets: "finished") {
      let clock = ManualClock()
      let delay = DelayOperation(.seconds(Int64.max))
      delay.clock = clock
      OperationQueue().addOperation(delay)
      await clock.waitForSleepers()
      clock.advance(by: .seconds(Int64.max))
      return "\(delay.state)"
    },
    HostileCase("moments that are further apart than a Duration holds", gets: "true, true") {
      let (first, last) = (ManualClock.Instant(offset: .shortest), ManualClock.Instant(offset: .longest))
      return "\(first.duration(to: last) == .longest), \(last.duration(to: first) == .shortest)"
    },
    HostileCase("waiting for fewer than no sleepers, and entries", gets: "returned") {
      await ManualClock().waitForSleepers(.min)
      await Journal<Int>().reaches(.min)
      return "returned"
    },
  ]

  static let attempts = [
    HostileCase("as many attempts as there are", gets: "100") {
      let retry = RetryOperation(attempts: .max) { attempt in
        ResultOperation { if attempt < 100 { throw TestError("again") } else { attempt } }
      }
      return "\(try await OperationQueue().run(retry))"
    },
    HostileCase("a backoff that wants to go back in time", gets: "2") {
      let retry = RetryOperation(attempts: 2, backoff: Backoff { _ in .shortest }) { attempt in
        ResultOperation { if attempt < 2 { throw TestError("again") } else { attempt } }
      }
      return "\(try await OperationQueue().run(retry))"
    },
    HostileCase("a retry after the shortest time", gets: "2") {
      let retry = RetryOperation(attempts: 2, retryIf: { _, _ in .retry(after: .shortest) }) { attempt in
        ResultOperation { if attempt < 2 { throw TestError("again") } else { attempt } }
      }
      return "\(try await OperationQueue().run(retry))"
    },
    HostileCase("a retry after the longest time, cancelled", gets: "cancelled") {
      let clock = ManualClock()
      let retry = RetryOperation<Int>(attempts: 2, backoff: .constant(.longest)) { _ in
        ResultOperation { throw TestError("again") }
      }
      retry.clock = clock
      OperationQueue().addOperation(retry)
      await clock.waitForSleepers()
      retry.cancel()
      return await words { "\(try await retry.value)" }
    },
    HostileCase("the pause after the last attempt there is", gets: "true") {
      let backoff = Backoff.exponential(initial: .seconds(1), multiplier: 1e300, cap: .longest)
      return "\(backoff.delay(after: .max) == .longest)"
    },
    HostileCase("a pause that shrinks to nothing", gets: "0.0 seconds") {
      "\(Backoff.exponential(initial: .seconds(1), multiplier: 0.5, cap: .seconds(1)).delay(after: .max))"
    },
    HostileCase("a cap below the beginning", gets: "1.0 seconds") {
      "\(Backoff.exponential(initial: .seconds(9), cap: .seconds(1)).delay(after: 1))"
    },
    HostileCase("the longest pause, all of it left to chance", gets: "true") {
      let backoff = Backoff.exponential(initial: .longest, multiplier: 1, cap: .longest, jitter: 1)
      return "\((1...100).allSatisfy { backoff.delay(after: $0) >= .zero })"
    },
  ]

  static let limits = [
    HostileCase("a group that may run nobody, cancelled", gets: "cancelled") {
      let group = GroupOperation([AsyncOperation()])
      group.maxConcurrentOperationCount = 0
      group.cancel()
      return await ending(group)
    },
    HostileCase("a group that may run as many as there are", gets: "success") {
      let group = GroupOperation([AsyncOperation(), AsyncOperation()])
      group.maxConcurrentOperationCount = .max
      return await ending(group)
    },
    HostileCase("room for as many events as there are", gets: "400 run, 0 dropped") {
      var (run, dropped) = (0, 0)
      for policy in EventCapacity.Policy.allCases {
        let scheduler = SerialScheduler(name: "vast", capacity: EventCapacity(.max, whenFull: policy))
        for _ in 0..<100 { scheduler.schedule {} }
        await scheduler.drained()
        run += scheduler.statistics.eventsRun
        dropped += scheduler.statistics.eventsDropped
      }
      return "\(run) run, \(dropped) dropped"
    },
    HostileCase("members that weigh as much as there is", gets: "1.0") {
      let members = [AsyncOperation(), AsyncOperation(), AsyncOperation()]
      for member in members { member.progressWeight = .max }
      let group = GroupOperation(members + [GroupOperation([AsyncOperation()])])
      let progress = group.progress
      _ = await ending(group)
      return "\(progress.fractionCompleted)"
    },
    HostileCase("members that weigh nothing", gets: "1.0") {
      let member = AsyncOperation()
      member.progressWeight = 0
      let group = GroupOperation([member])
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
    HostileCase("a timeline of no width, and of all", gets: "true, true, … and 1 more.") {
      let tracer = OperationTracer()
      let operation = AsyncOperation()
      tracer.trace(operation)
      _ = await ending(operation)
      let lines = { (width: Int, lines: Int) in
        tracer.timeline(width: width, lines: lines).split(separator: "\n", omittingEmptySubsequences: false)
      }
      let narrow = lines(.min, .max).allSatisfy { $0.count <= 40 }
      let wide = lines(.max, .max).allSatisfy { $0.count <= 10_000 }
      return "\(narrow), \(wide), \(lines(40, .min).dropLast().last ?? "")"
    },
  ]

  @Test(arguments: timeouts) func aTimeout(_ line: HostileCase) async { await line.check() }
  @Test(arguments: delays) func aDelay(_ line: HostileCase) async { await line.check() }
  @Test(arguments: attempts) func anAttempt(_ line: HostileCase) async { await line.check() }
  @Test(arguments: limits) func aLimit(_ line: HostileCase) async { await line.check() }
}
