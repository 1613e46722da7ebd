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
    private let clock = ContinuousClock()

    init(_ token: LiveCount.Token) { self.token = token }

    var now: ContinuousClock.Instant { clock.now }
    var minimumResolution: Duration { clock.minimumResolution }
    func sleep(until deadline: ContinuousClock.Instant, tolerance: Duration?) async throws {
      try await clock.sleep(until: deadline, tolerance: tolerance)
    }
  }

  private let live = LiveCount()
  private let journal = Journal<String>()

  private func scheduler() -> SerialScheduler {
    SerialScheduler(name: "short-lived", clock: CountedClock(LiveCount.Token(live)))
  }

  /// Returns a closure that counts as long as it lives.
  private func token() -> @Sendable () -> Void {
    let token = LiveCount.Token(live)
    return { withExtendedLifetime(token) {} }
  }

  @Test func oneThatWasNeverUsedIsReleased() {
    let reference = WeakReference(scheduler())
    #expect(reference.object == nil && live.alive == 0)
  }

  @Test func oneThatIsIdleAndUnheldIsReleased() async throws {
    var scheduler: SerialScheduler? = scheduler()
    let reference = WeakReference(scheduler!)
    for _ in 0..<100 { scheduler?.schedule {} }
    try await scheduler?.run {}
    scheduler?.queue.addOperation {}
    scheduler?.queue.addOperation(NoteOperation("operation", journal))
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
      scheduler?.queue.addOperation { journal.write("block \(index)") }
      scheduler?.queue.addOperation(NoteOperation("operation \(index)", journal))
    }
    scheduler = nil
    #expect(live.alive == 1)
    end.open()
    await journal.reaches(1020)
    let expected = (0..<10).map { index in
      Array(repeating: "event \(index)", count: 100) + ["block \(index)", "operation \(index)"]
    }
    #expect(journal.entries == Array(expected.joined()))
    await live.none()
  }

  @Test func anOperationOnItsQueueIsRunThoughTheSchedulerIsGone() async {
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
    for _ in 0..<100 {
      scheduler.schedule { [token = LiveCount.Token(live)] in withExtendedLifetime(token) { seen.write(live.alive) } }
    }
    #expect(live.alive == 100)
    end.open()
    await seen.reaches(100)
    #expect(seen.entries == (1...100).reversed())
    await live.none()
  }

  @Test func closuresOfEveryKindAreReleasedAfterTheyRan() async throws {
    let scheduler = SerialScheduler(name: "line")
    scheduler.schedule(token())
    scheduler.schedule(coalescing: "key", token())
    let event = scheduler.schedule(after: .zero, token())
    let later = scheduler.schedule(after: .milliseconds(1), token())
    try await scheduler.run(token())
    try await scheduler.send(token())
    _ = await onThread { [body = token()] in try scheduler.wait(body) }
    await Notes(on: scheduler).perform(token())
    scheduler.schedule(token(), deliverOn: SerialScheduler(name: "other"), { [body = token()] _ in body() })
    withExtendedLifetime((event, later)) {}
    await scheduler.drained()
    await live.none()
  }

  @Test func theOneThatSchedulesItsSuccessorDoesNotPileUp() async {
    let scheduler = SerialScheduler(name: "chain")
    let done = Gate()
    let seen = Locked(0)
    @Sendable func next(_ count: Int) {
      seen.withLock { $0 = max($0, live.alive) }
      if count == 0 { return done.open() }
      scheduler.schedule { [token = LiveCount.Token(live)] in withExtendedLifetime(token) { next(count - 1) } }
    }
    next(20_000)
    await done.opened()
    await live.none()
    #expect(seen.withLock { $0 } <= 2)
    await scheduler.drained()
    #expect(scheduler.statistics.eventsRun == 20_000)
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

  @Test func anActorAndItsSchedulerAreReleased() async {
    var notes: Notes? = Notes(on: scheduler())
    let reference = WeakReference(notes!)
    await notes?.note("text")
    notes = nil
    await live.none()
    #expect(reference.object == nil)
  }
}
