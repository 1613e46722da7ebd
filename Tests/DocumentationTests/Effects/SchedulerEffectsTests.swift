import Foundation
import Operations
import OperationsTestSupport
import Testing

/// The statements of the page “Effects” about schedulers.
@Suite(.timeLimit(.minutes(5)))
struct SchedulerEffectsTests {
  private let scheduler = SerialScheduler(name: "effects")

  private final class Counter: Schedulable, @unchecked Sendable {
    let scheduler: SerialScheduler
    @Confined private var count = 0

    init(on scheduler: SerialScheduler) { self.scheduler = scheduler }

    func increase() -> Int {
      count += 1
      return count
    }
  }

  private actor Notes: ScheduledActor {
    nonisolated let scheduler: SerialScheduler

    init(on scheduler: SerialScheduler) { self.scheduler = scheduler }

    var isOnScheduler: Bool { scheduler.isCurrent }
  }

  @Test func scheduleNeverRunsInline() async throws {
    let order = Journal<String>()
    try await scheduler.run { [scheduler] in
      scheduler.schedule { order.write("event") }
      scheduler.schedule(after: .zero) { order.write("delayed") }
      order.write("scheduled")
    }
    await scheduler.drained()
    #expect(order.entries == ["scheduled", "event", "delayed"])
  }

  @Test func waitOnTheSchedulerItselfRunsAtOnce() async throws {
    let answer = try await scheduler.run { [scheduler] in try scheduler.wait { scheduler.isCurrent } }
    #expect(answer)
  }

  @Test func everythingIsRunOnTheScheduler() async throws {
    let isThere = Journal<Bool>()
    let note: @Sendable () -> Void = { [scheduler] in isThere.write(scheduler.isCurrent) }
    scheduler.schedule(note)
    scheduler.schedule(coalescing: "key", note)
    scheduler.schedule(after: .zero, note)
    try await scheduler.send(note)
    try await scheduler.run(note)
    scheduler.queue.addOperation(ResultOperation { note() })
    await scheduler.drained()
    await scheduler.queue.finished()
    isThere.write(await Notes(on: scheduler).isOnScheduler)
    let counter = Counter(on: scheduler)
    #expect(try await counter.run { $0.increase() } == 1)
    let object = SchedulableObject(NSMutableArray(), on: scheduler)
    isThere.write(try await object.run { [scheduler] _ in scheduler.isCurrent })
    #expect(isThere.entries == Array(repeating: true, count: 8))
  }

  @Test func resultsAreDeliveredOnTheOtherScheduler() async {
    let other = SerialScheduler(name: "other")
    let (isThere, isOnMain) = (Journal<Bool>(), Journal<Bool>())
    scheduler.schedule({ 1 }, deliverOn: other, { _ in isThere.write(other.isCurrent) })
    scheduler.schedule({ 1 }, deliverOn: .main, { _ in isOnMain.write(SerialScheduler.main.isCurrent) })
    await isThere.reaches(1)
    await isOnMain.reaches(1)
    #expect(isThere.entries == [true] && isOnMain.entries == [true])
  }

  /// Holds the scheduler until the gate that it returns is opened.
  private func hold(_ scheduler: SerialScheduler) async -> DispatchSemaphore {
    let (begun, end) = (Gate(), DispatchSemaphore(value: 0))
    scheduler.schedule {
      begun.open()
      end.wait()
    }
    await begun.opened()
    return end
  }

  @Test func cancellingKeepsFromBeingRunWhatHasNotBegun() async {
    let end = await hold(scheduler)
    let order = Journal<String>()
    let delayed = scheduler.schedule(after: .seconds(3600)) { order.write("delayed") }
    let task = Task { [scheduler] in try await scheduler.run { order.write("run") } }
    while scheduler.statistics.eventsQueued == 0 { await Task.yield() }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    delayed.cancel()
    end.signal()
    await scheduler.drained()
    #expect(order.entries.isEmpty)
  }

  @Test func whatIsTooMuchIsRefused() async {
    let small = SerialScheduler(name: "small", capacity: EventCapacity(1, whenFull: .fail))
    let end = await hold(small)
    #expect(small.schedule {})
    #expect(!small.schedule {})
    await #expect(throws: OperationError(.overflow, "")) { try await small.run {} }
    end.signal()
    await small.drained()
    #expect(small.statistics.eventsDropped == 2)
  }

  @Test func afterAShutdownActorsAreRunAndEventsRefused() async {
    let notes = Notes(on: scheduler)
    scheduler.shutDown()
    #expect(!scheduler.schedule {})
    await #expect(throws: OperationError(.shutDown, "")) { try await scheduler.run {} }
    #expect(await notes.isOnScheduler)
  }

  @Test func theWatchdogReportsFromAnotherThread() async {
    let reports = Journal<Bool>()
    scheduler.watchdog = SchedulerWatchdog(limit: .milliseconds(1)) { [scheduler] _ in
      reports.write(scheduler.isCurrent)
    }
    let end = await hold(scheduler)
    await reports.reaches(1)
    end.signal()
    await scheduler.drained()
    scheduler.watchdog = nil
    #expect(reports.entries == [false])
  }

  @Test func aWaitThatNobodyCanServeInTimeEnds() async {
    let end = await hold(scheduler)
    let codes = Journal<OperationError.Code?>()
    await onThread { [scheduler] in
      do { try scheduler.wait(timeout: .milliseconds(1)) {} } catch { codes.write((error as? OperationError)?.code) }
    }
    #expect(codes.entries == [.timedOut])
    end.signal()
    await scheduler.drained()
  }

  // MARK: Looking

  @Test func lookingIsDoneAtAnyMomentFromAnyThread() async throws {
    let group = GroupOperation((0..<500).map { _ in AsyncOperation() })
    let queue = OperationQueue()
    let tracer = OperationTracer()
    tracer.trace(group)
    async let end: Void = queue.run(group)
    for _ in 0..<20 {
      await onThread {
        _ = OperationGraph([group]).mermaid()
        _ = group.stallReport().description
        _ = queue.stallReport()
        _ = (tracer.graph.criticalPath, tracer.timeline(), tracer.summary)
      }
    }
    try await end
    #expect(tracer.summary.operations == 500)
  }
}
