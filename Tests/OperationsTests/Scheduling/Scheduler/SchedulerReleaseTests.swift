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
    let (journal, live) = (journal, live)
    var scheduler: SerialScheduler? = scheduler()
    let end = await scheduler!.held()
    for index in 0..<1000 { scheduler?.schedule { journal.write("\(index)") } }
    scheduler = nil
    #expect(live.alive == 1)
    end.open()
    await journal.reaches(1000)
    #expect(journal.entries == (0..<1000).map(String.init))
    await live.none()
  }

  @Test func eventsAroundOperationsRunThoughItIsUnheld() async {
    let journal = journal
    do {
      let scheduler = scheduler()
      let end = await scheduler.held()
      scheduler.schedule { journal.write("1") }
      scheduler.queue.addOperation { journal.write("2") }
      scheduler.schedule { journal.write("3") }
      scheduler.queue.addOperation(NoteOperation("4", journal))
      end.open()
    }
    await journal.reaches(4)
    #expect(journal.entries == ["1", "2", "3", "4"])
    await live.none()
  }

  @Test func anOperationOnItsQueueIsRunThoughTheSchedulerIsGone() async {
    let journal = journal
    let gate = Gate()
    do {
      let scheduler = scheduler()
      scheduler.queue.addOperation {
        gate.pass()
        journal.write(SerialScheduler.current?.name ?? "none")
      }
    }
    gate.open()
    await journal.reaches(1)
    #expect(journal.entries == ["none"])
    await live.none()
  }

  @Test func anUnheldOneLivesUntilItsDelayedEventsHaveRun() async {
    let clock = ManualClock()
    let journal = journal
    var scheduler: SerialScheduler? = SerialScheduler(name: "later", clock: clock)
    let reference = WeakReference(scheduler!)
    scheduler?.schedule(after: .seconds(5)) { journal.write("late") }
    scheduler = nil
    #expect(reference.object != nil)
    clock.advance(by: .seconds(5))
    await journal.reaches(1)
  }

  @Test func whenItsDelayedEventIsCancelledAnUnheldOneIsReleased() {
    let clock = ManualClock()
    var scheduler: SerialScheduler? = SerialScheduler(name: "later", clock: clock)
    let reference = WeakReference(scheduler!)
    let event = scheduler?.schedule(after: .seconds(5)) {}
    scheduler = nil
    event?.cancel()
    #expect(reference.object == nil && clock.sleepers == 0)
  }

  /// - Parameter length: Of an event before, after which the drain leaves the rest to the next one.
  @Test(arguments: [Duration.zero, .milliseconds(11)])
  func aClosureIsReleasedBeforeTheNextOneRuns(length: Duration) async throws {
    let scheduler = SerialScheduler(name: "line")
    let live = live
    let end = await scheduler.held()
    scheduler.schedule {
      let start = ContinuousClock.now
      while .now - start < length {}
    }
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
    let live = live
    func token() -> @Sendable () -> Void {
      let token = LiveCount.Token(live)
      return { withExtendedLifetime(token) {} }
    }
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
    let live = live
    let done = Gate()
    let seen = Locked(0)
    @Sendable func next(_ count: Int) {
      seen.withLock { $0 = max($0, live.alive) }
      if count == 0 { return done.open() }
      scheduler.schedule { [token = LiveCount.Token(live)] in withExtendedLifetime(token) { next(count - 1) } }
    }
    next(5000)
    await done.opened()
    await live.none()
    #expect(seen.withLock { $0 } <= 2)
  }

  @Test func whatDiscardDropsIsReleased() async {
    let scheduler = SerialScheduler(name: "ending")
    let live = live
    let end = await scheduler.held()
    // The one that is being run is in a batch; these come behind it.
    for _ in 0..<10 {
      scheduler.schedule { [token = LiveCount.Token(live)] in withExtendedLifetime(token) {} }
      scheduler.schedule(coalescing: "key") { [token = LiveCount.Token(live)] in withExtendedLifetime(token) {} }
      scheduler.schedule(after: .seconds(3600)) { [token = LiveCount.Token(live)] in withExtendedLifetime(token) {} }
      immediately { [token = LiveCount.Token(live)] in try await scheduler.run { withExtendedLifetime(token) {} } }
    }
    scheduler.shutDown(.discard)
    end.open()
    await live.none()
  }

  @Test func anIdleSchedulerCanBeReleasedOnItsOwnThread() async {
    let live = live
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
