import Foundation
import Operations
import OperationsTestSupport
import Testing

/// Counters, times, and the watchdog.
@Suite(.timeLimit(.minutes(5)))
struct MonitoringTests {
  private let clock = ManualClock()
  private let scheduler: SerialScheduler
  private let reports = Journal<SchedulerWatchdog.Report>()

  init() { scheduler = SerialScheduler(name: "seen", clock: clock) }

  private func watch(_ limit: Duration) {
    scheduler.watchdog = SchedulerWatchdog(limit: limit) { [reports] report in reports.write(report) }
  }

  // MARK: Counters

  @Test func eventsAreCounted() async throws {
    let scheduler = scheduler
    #expect(scheduler.statistics.eventsRun == 0 && scheduler.statistics.eventsQueued == 0)
    let end = await scheduler.held()
    for _ in 0..<10 { scheduler.schedule {} }
    scheduler.schedule(after: .seconds(1)) {}
    var statistics = scheduler.statistics
    #expect(statistics.eventsRun == 0 && statistics.eventsQueued == 10 && statistics.eventsDropped == 0)
    end.open()
    await scheduler.drained()
    statistics = scheduler.statistics
    #expect(statistics.eventsRun == 11 && statistics.eventsQueued == 0)
    try await scheduler.run {}
    _ = await onThread { try scheduler.wait {} }
    await scheduler.drained()
    #expect(scheduler.statistics.eventsRun == 13)
    clock.advance(by: .seconds(1))
    await scheduler.drained()
    #expect(scheduler.statistics.eventsRun == 14)
  }

  @Test func jobsAreCounted() async throws {
    let notes = Notes(on: scheduler)
    let end = await scheduler.held()
    let jobs = (0..<5).map { _ in immediately { await notes.note("job") } }
    #expect(scheduler.statistics.jobsQueued == 5 && scheduler.statistics.jobsRun == 0)
    end.open()
    for job in jobs { try await job.value }
    #expect(scheduler.statistics.jobsQueued == 0 && scheduler.statistics.jobsRun >= 5)
    #expect(scheduler.statistics.eventsQueued == 0)
  }

  @Test func whatIsTakenBackIsNotQueuedAndNotDropped() async {
    let scheduler = scheduler
    let end = await scheduler.held()
    let run = immediately { try await scheduler.run {} }
    let event = scheduler.schedule(after: .zero) {}
    #expect(scheduler.statistics.eventsQueued == 2)
    run.cancel()
    event.cancel()
    _ = await run.result
    #expect(scheduler.statistics.eventsQueued == 0 && scheduler.statistics.eventsDropped == 0)
    end.open()
    await scheduler.drained()
    #expect(scheduler.statistics.eventsRun == 1)
  }

  @Test func whatAShutdownDropsIsCounted() async {
    let end = await scheduler.held()
    for _ in 0..<3 { scheduler.schedule {} }
    scheduler.schedule(after: .seconds(1)) {}
    scheduler.schedule(coalescing: "key") {}
    scheduler.shutDown(.discard)
    end.open()
    await scheduler.drained()
    let statistics = scheduler.statistics
    #expect(statistics.eventsQueued == 0 && statistics.eventsDropped == 5 && statistics.eventsRun == 1)
  }

  // MARK: Times

  @Test func byDefaultNoTimeIsMeasured() async {
    scheduler.schedule { [clock] in clock.advance(by: .seconds(1)) }
    await scheduler.drained()
    #expect(!scheduler.recordsTimings)
    #expect(scheduler.statistics.longestRun == nil && scheduler.statistics.longestWait == nil)
  }

  @Test func theLongestWaitAndRunAreMeasured() async {
    let clock = clock
    scheduler.recordsTimings = true
    let end = await scheduler.held()
    scheduler.schedule { clock.advance(by: .seconds(3)) }
    scheduler.schedule { clock.advance(by: .seconds(2)) }
    clock.advance(by: .seconds(10))
    scheduler.schedule {}
    end.open()
    await scheduler.drained()
    // The first held it for 10; the second waited for those and 3 more.
    #expect(scheduler.statistics.longestRun == .seconds(10))
    #expect(scheduler.statistics.longestWait == .seconds(13))
    scheduler.recordsTimings = false
    #expect(scheduler.statistics.longestRun == nil && scheduler.statistics.longestWait == nil)
  }

  @Test func aRunsTimesAreMeasuredAsWell() async throws {
    let (scheduler, clock) = (scheduler, clock)
    scheduler.recordsTimings = true
    let end = await scheduler.held()
    let run = immediately { try await scheduler.run { clock.advance(by: .seconds(20)) } }
    clock.advance(by: .seconds(5))
    end.open()
    try await run.value
    await scheduler.drained()
    #expect(scheduler.statistics.longestRun == .seconds(20))
    #expect(scheduler.statistics.longestWait == .seconds(5))
  }

  @Test func aJobsRunIsMeasured() async {
    let clock = clock
    scheduler.recordsTimings = true
    await Notes(on: scheduler).perform { clock.advance(by: .seconds(4)) }
    await scheduler.drained()
    #expect(scheduler.statistics.longestRun == .seconds(4))
  }

  // MARK: Watchdog

  @Test func anEventThatHoldsTheSchedulerIsReportedOnceWithItsLine() async {
    watch(.seconds(2))
    let (scheduler, clock) = (scheduler, clock)
    let begun = Gate()
    let end = Gate()
    let line = #line + 1
    scheduler.schedule {
      begun.open()
      end.pass()
    }
    await begun.opened()
    clock.advance(by: .seconds(1))
    #expect(reports.count == 0)
    clock.advance(by: .seconds(1))
    // While it is still at it.
    await reports.reaches(1)
    clock.advance(by: .seconds(100))
    end.open()
    await scheduler.drained()
    #expect(reports.count == 1)
    let report = reports.entries[0]
    #expect(report.scheduler == "seen" && report.limit == .seconds(2))
    #expect(report.origin?.line == UInt(line))
    #expect(report.description.contains("MonitoringTests.swift:\(line)"))
    #expect(report.description.contains("“seen”"))
  }

  @Test func shortEventsAreNotReported() async {
    watch(.seconds(2))
    let clock = clock
    for _ in 0..<10 { scheduler.schedule { clock.advance(by: .seconds(1)) } }
    await scheduler.drained()
    clock.advance(by: .seconds(100))
    #expect(reports.count == 0)
  }

  @Test func aLongOneAfterShortOnesIsReported() async {
    watch(.seconds(2))
    let clock = clock
    for _ in 0..<3 { scheduler.schedule { clock.advance(by: .milliseconds(1500)) } }
    scheduler.schedule { clock.advance(by: .milliseconds(1900)) }
    let line = #line + 1
    scheduler.schedule { clock.advance(by: .milliseconds(2100)) }
    await scheduler.drained()
    #expect(reports.entries.map(\.origin?.line) == [UInt(line)])
  }

  @Test func eachLongOneIsReported() async {
    watch(.seconds(2))
    let clock = clock
    for _ in 0..<5 { scheduler.schedule { clock.advance(by: .seconds(3)) } }
    await scheduler.drained()
    #expect(reports.count == 5)
  }

  @Test func aJobIsReportedWithoutALine() async {
    watch(.seconds(2))
    let clock = clock
    await Notes(on: scheduler).perform { clock.advance(by: .seconds(3)) }
    await scheduler.drained()
    #expect(reports.count == 1 && reports.entries.first?.origin == nil)
  }

  @Test func aRunAndAnObjectsEventAreReportedWithTheirLines() async throws {
    watch(.seconds(2))
    let (scheduler, clock) = (scheduler, clock)
    let shelf = Shelf(on: scheduler)
    let line = #line
    try await scheduler.run { clock.advance(by: .seconds(3)) }
    shelf.schedule { _ in clock.advance(by: .seconds(3)) }
    _ = scheduler.schedule(after: .zero) { clock.advance(by: .seconds(3)) }
    scheduler.schedule(coalescing: "key") { clock.advance(by: .seconds(3)) }
    _ = await onThread { try scheduler.wait { clock.advance(by: .seconds(3)) } }
    await scheduler.drained()
    #expect(reports.entries.map(\.origin?.line) == (1...5).map { UInt(line + $0) })
  }

  @Test func oneThatIsTakenAwayReportsNoMore() async {
    watch(.seconds(2))
    let clock = clock
    let begun = await scheduler.held()
    scheduler.watchdog = nil
    clock.advance(by: .seconds(10))
    begun.open()
    await scheduler.drained()
    #expect(reports.count == 0)
  }

  @Test func aShorterLimitCountsFromTheNextEventOn() async {
    let clock = clock
    watch(.seconds(3600))
    scheduler.schedule {}
    await scheduler.drained()
    watch(.seconds(2))
    scheduler.schedule { clock.advance(by: .seconds(3)) }
    await scheduler.drained()
    #expect(reports.entries.map(\.limit) == [.seconds(2)])
  }

  @Test func anEventThatWaitsForAnotherSchedulerIsReportedAsWell() async {
    watch(.seconds(2))
    let clock = clock
    let other = SerialScheduler(name: "other")
    let line = #line + 1
    scheduler.schedule { try? other.wait { clock.advance(by: .seconds(3)) } }
    await scheduler.drained()
    #expect(reports.entries.map(\.origin?.line) == [UInt(line)])
  }
}
