import Operations
import OperationsTestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct MonitoringTests {
  private let clock = ManualClock()
  private let scheduler: SerialScheduler
  private let reports = Journal<SchedulerWatchdog.Report>()

  init() { scheduler = SerialScheduler(name: "seen", clock: clock) }

  private func work(for duration: Duration) { scheduler.schedule { clock.advance(by: duration) } }

  private func watch(_ limit: Duration) {
    scheduler.watchdog = SchedulerWatchdog(limit: limit) { [reports] report in reports.write(report) }
  }

  private var reportedLines: [UInt?] { reports.entries.map(\.origin?.line) }

  @Test func jobsAreCounted() async {
    let (notes, end) = (Notes(on: scheduler), await scheduler.held())
    for _ in 0..<5 { immediately { await notes.note("job") } }
    #expect(scheduler.statistics.jobsRun == 0 && scheduler.statistics.jobsQueued == 5)
    await scheduler.drained(afterOpening: end)
    #expect(scheduler.statistics.jobsRun >= 5 && scheduler.statistics.jobsQueued == 0)
  }

  private func expect(longestRun: Duration?, longestWait: Duration?, _ location: SourceLocation = #_sourceLocation) {
    #expect(scheduler.statistics.longestRun == longestRun, sourceLocation: location)
    #expect(scheduler.statistics.longestWait == longestWait, sourceLocation: location)
  }

  @Test func theLongestWaitAndRunOfEventsAndJobsAreMeasured() async {
    #expect(!scheduler.recordsTimings)
    work(for: .seconds(1))
    await scheduler.drained()
    expect(longestRun: nil, longestWait: nil)
    scheduler.recordsTimings = true
    let end = await scheduler.held()
    work(for: .seconds(3))
    work(for: .seconds(2))
    clock.advance(by: .seconds(10))
    scheduler.schedule {}
    await scheduler.drained(afterOpening: end)
    // The first event held the scheduler for 10 seconds, and the third waited for those and 3 more.
    expect(longestRun: .seconds(10), longestWait: .seconds(13))
    let next = await scheduler.held()
    immediately { try await scheduler.run { clock.advance(by: .seconds(20)) } }
    clock.advance(by: .seconds(14))
    await scheduler.drained(afterOpening: next)
    expect(longestRun: .seconds(20), longestWait: .seconds(14))
    await Notes(on: scheduler).perform { clock.advance(by: .seconds(30)) }
    await scheduler.drained()
    expect(longestRun: .seconds(30), longestWait: .seconds(14))
    scheduler.recordsTimings = false
    expect(longestRun: nil, longestWait: nil)
  }

  // MARK: Watchdog

  @Test func anEventThatHoldsTheScheduler_evenAfterShortOnes_isReportedOnceWithItsLine() async {
    watch(.seconds(2))
    for duration in [1500, 1500, 1500, 1900] { work(for: .milliseconds(duration)) }
    let line = #line + 1
    scheduler.schedule {
      clock.advance(by: .seconds(1))
      #expect(reports.count == 0)
      clock.advance(by: .seconds(1))
      #expect(reports.count == 1)
      clock.advance(by: .seconds(100))
    }
    await scheduler.drained()
    clock.advance(by: .seconds(100))
    #expect(reportedLines == [UInt(line)])
    let report = reports.entries[0]
    #expect(report.scheduler == "seen" && report.limit == .seconds(2))
    for part in ["MonitoringTests.swift:\(line)", "“seen”"] { #expect(report.description.contains(part)) }
  }

  @Test func eventsOfEveryKindAreReportedWithTheirLinesAndJobsWithout() async throws {
    watch(.seconds(2))
    let (shelf, object) = (Shelf(on: scheduler), SchedulableObject(1, on: scheduler))
    let line = #line
    try await object.run { _ in clock.advance(by: .seconds(3)) }
    shelf.schedule { _ in clock.advance(by: .seconds(3)) }
    _ = scheduler.schedule(after: .zero) { clock.advance(by: .seconds(3)) }
    scheduler.schedule(coalescing: "key") { clock.advance(by: .seconds(3)) }
    shelf.schedule(after: .zero) { _ in clock.advance(by: .seconds(3)) }
    try await shelf.send { _ in clock.advance(by: .seconds(3)) }
    _ = await onThread { try shelf.wait { _ in clock.advance(by: .seconds(3)) } }
    await Notes(on: scheduler).perform { clock.advance(by: .seconds(3)) }
    await scheduler.drained()
    #expect(reportedLines == (1...7).map { UInt(line + $0) } + [nil])
  }

  @Test func anEventThatWaitsAndOneThatIsRunMeanwhileAreReportedOnceEach() async {
    let other = SerialScheduler(name: "other")
    watch(.seconds(2))
    let line = #line
    scheduler.schedule {
      try? other.wait { try scheduler.wait { clock.advance(by: .seconds(2)) } }
      clock.advance(by: .seconds(10))
    }
    await scheduler.drained()
    #expect(reportedLines == [UInt(line + 1), UInt(line + 2)])
  }

  @Test func replacedOrRemovedWatchdog_reportsNoMore_andTheNewOneReportsWhatIsRunning() async {
    watch(.longest)
    scheduler.schedule {}
    await scheduler.drained()
    watch(.seconds(2))
    work(for: .seconds(3))
    await scheduler.drained()
    #expect(reports.entries.map(\.limit) == [.seconds(2)])
    let other = await scheduler.held()
    watch(.seconds(3))
    clock.advance(by: .seconds(10))
    await scheduler.drained(afterOpening: other)
    #expect(reports.entries.map(\.limit) == [.seconds(2), .seconds(3)])
    let end = await scheduler.held()
    scheduler.watchdog = nil
    clock.advance(by: .seconds(10))
    await scheduler.drained(afterOpening: end)
    #expect(reports.count == 2)
  }
}
