import Foundation
import Operations
import OperationsTestSupport
import Soak
import Testing

/// Nothing lives longer than it is needed, and nothing shorter.
@Suite(.timeLimit(.minutes(5)))
struct SchedulerReleaseTests {
  /// A clock that lives as long as the scheduler which has it.
  private struct CountedClock: Clock {
    let token: LiveCount.Token
    var now: ContinuousClock.Instant { .now }
    var minimumResolution: Duration { .zero }

    func sleep(until deadline: ContinuousClock.Instant, tolerance: Duration?) async throws {
      try await Task.sleep(until: deadline, tolerance: tolerance)
    }
  }

  private let live = LiveCount()
  private let journal = Journal<String>()

  private func scheduler() -> SerialScheduler {
    SerialScheduler(name: "short-lived", clock: CountedClock(token: LiveCount.Token(live)))
  }

  @Test func oneThatIsIdleAndUnheldIsReleased() async throws {
    var scheduler: SerialScheduler? = scheduler()
    let reference = WeakReference(scheduler!)
    for _ in 0..<100 { scheduler?.schedule {} }
    try await scheduler?.run {}
    scheduler?.queue.addOperation {}
    scheduler?.queue.addOperation(NoteOperation("operation", journal))
    await Notes(on: scheduler!).note("job")
    await scheduler?.drained()
    #expect(reference.object != nil)
    scheduler = nil
    await live.none()
    #expect(reference.object == nil)
  }

  @Test func oneThatIsUnheldIsNotReleasedBeforeItHasDrained() async {
    var scheduler: SerialScheduler? = scheduler()
    let end = await scheduler!.held()
    for index in 0..<10 {
      for _ in 0..<100 { scheduler?.schedule { journal.write("event \(index)") } }
      scheduler?.queue.addOperation(NoteOperation("operation \(index)", journal))
    }
    scheduler = nil
    #expect(live.alive == 1)
    end.open()
    await journal.reaches(1010)
    let expected = (0..<10).flatMap { Array(repeating: "event \($0)", count: 100) + ["operation \($0)"] }
    #expect(journal.entries == expected)
    await live.none()
  }

  @Test func operationInItsQueue_isRunAfterTheSchedulerIsReleased() async {
    let gate = Gate()
    scheduler().queue.addOperation {
      gate.pass()
      journal.write(SerialScheduler.current?.name ?? "none")
    }
    gate.open()
    await journal.reaches(1)
    #expect(journal.entries == ["none"])
    await live.none()
  }

  @Test(arguments: [true, false])
  func anUnheldOneLivesUntilItsDelayedEventsHaveRunOrAreCancelled(isCancelled: Bool) async {
    let clock = ManualClock()
    var scheduler: SerialScheduler? = SerialScheduler(name: "later", clock: clock)
    let reference = WeakReference(scheduler!)
    let event = scheduler?.schedule(after: .seconds(5)) { journal.write("late") }
    scheduler = nil
    #expect(reference.object != nil)
    if isCancelled {
      event?.cancel()
      #expect(reference.object == nil && clock.sleepers == 0)
    } else {
      clock.advance(by: .seconds(5))
      await journal.reaches(1)
    }
  }

  /// - Parameter length: The length of an earlier event. After a long one the drain leaves the rest to the next drain.
  @Test(arguments: [Duration.zero, .milliseconds(11)])
  func aClosureIsReleasedBeforeTheNextOneRuns(length: Duration) async throws {
    let scheduler = SerialScheduler(name: "line")
    let end = await scheduler.held()
    scheduler.schedule { work(for: length) }
    let seen = Journal<Int>()
    for _ in 0..<100 { scheduler.schedule(live.counted { seen.write(live.alive) }) }
    #expect(live.alive == 100)
    end.open()
    await seen.reaches(100)
    #expect(seen.entries == (1...100).reversed())
    await live.none()
  }

  @Test func closuresOfEveryKindAreReleasedAfterTheyRan() async throws {
    let scheduler = SerialScheduler(name: "line")
    scheduler.schedule(live.counted())
    scheduler.schedule(coalescing: "key", live.counted())
    let event = scheduler.schedule(after: .zero, live.counted())
    let later = scheduler.schedule(after: .milliseconds(1), live.counted())
    try await scheduler.run(live.counted())
    try await scheduler.send(live.counted())
    _ = await onThread { [body = live.counted()] in try scheduler.wait(body) }
    await Notes(on: scheduler).perform(live.counted())
    let other = SerialScheduler(name: "other")
    scheduler.schedule(live.counted(), deliverOn: other, { [body = live.counted()] _ in body() })
    withExtendedLifetime((event, later)) {}
    await scheduler.drained()
    await live.none()
  }

  @Test func anIdleSchedulerCanBeReleasedOnItsOwnThread() async {
    for _ in 0..<100 {
      let box = Locked<SerialScheduler?>(scheduler())
      let done = Gate()
      box.withLock { $0 }?.schedule {
        let last = box.withLock { $0.take() }
        withExtendedLifetime(last) { done.open() }
      }
      await done.opened()
    }
    await live.none()
  }
}

extension LiveCount {
  /// Returns a closure that is counted as long as it lives.
  func counted(_ body: @escaping @Sendable () -> Void = {}) -> @Sendable () -> Void {
    let token = Token(self)
    return { withExtendedLifetime(token, body) }
  }
}
