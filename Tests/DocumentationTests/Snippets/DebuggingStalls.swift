import Foundation
import Operations
import OperationsTestSupport
import Testing

private let logged = Journal<String>()

private func log(_ text: String) { logged.write(text) }

func reportWhenSignalled(
  _ queue: OperationQueue,
  to log: @escaping @Sendable (String) -> Void
) -> any DispatchSourceSignal {
  signal(SIGUSR1, SIG_IGN)  // or the signal ends the program
  let source = DispatchSource.makeSignalSource(
    signal: SIGUSR1,
    queue: .global()
  )
  source.setEventHandler { log("\(queue.stallReport())") }
  source.activate()  // retain the source
  return source
}

private func run(_ group: GroupOperation, on queue: OperationQueue, reportingAfter limit: Duration) async throws {
  let watchdog = Task {
    try await group.clock.sleep(for: limit)
    log("\(group.name ?? "") is late. \(group.stallReport())")
  }
  defer { watchdog.cancel() }
  try await queue.run(group)
}

/// The sentences on the page are those of real reports.
@Suite(.timeLimit(.minutes(5)))
struct DebuggingStallsSnippets {
  private final class Load: AsyncOperation, @unchecked Sendable {
    override func execute() {}
  }

  private struct Session: Sendable {
    let gate = Gate()

    func signIn() async throws { await gate.opened() }
  }

  private let queue = OperationQueue()

  init() { queue.name = "sync" }

  /// Returns the text with one space between words, and with one time for all times.
  private static func plain(_ text: String) -> String {
    text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
      .replacing(/for [0-9.]+ (?:µs|ms|s|min)/, with: "for 42 s")
  }

  /// Expects that a report and the page contain a part of a sentence.
  private func expectOnPage(
    _ text: String,
    of report: StallReport,
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    #expect(Self.plain("\(report)").contains(text), "\(report)", sourceLocation: sourceLocation)
    try expectOnPage(text, sourceLocation: sourceLocation)
  }

  private func expectOnPage(_ text: String, sourceLocation: SourceLocation = #_sourceLocation) throws {
    let page = try Repository.file("Sources/Operations/Operations.docc/DebuggingStalls.md")
    let isOnPage = Self.plain(page.lines.joined(separator: " ")).contains(Self.plain(text))
    #expect(isOnPage, "\(text)", sourceLocation: sourceLocation)
  }

  /// Returns the report when all executing operations have executed for a second.
  private func report(of queue: OperationQueue, naming count: Int) async throws -> StallReport {
    while true {
      let report = queue.stallReport()
      let isYoung = report.entries.contains { entry in
        entry.cause == .transitioning || entry.elapsed.map { $0 < .seconds(1) } ?? false
      }
      if report.entries.count == count, !isYoung { return report }
      try await Task.sleep(for: .milliseconds(50))
    }
  }

  // MARK: Creating a report

  #if !os(iOS) && !os(tvOS) && !os(watchOS) && !os(visionOS)
  /// In a separate process, because the signal is for the whole process.
  @Test func bySignal() async {
    await #expect(processExitsWith: .success) {
      let (queue, reports) = (OperationQueue(), Journal<String>())
      queue.name = "sync"
      queue.isSuspended = true
      queue.addOperation(operation("upload"))
      let source = reportWhenSignalled(queue) { reports.write($0) }
      // A signal that arrives before the source is active is ignored.
      while reports.count == 0 {
        kill(getpid(), SIGUSR1)
        try await Task.sleep(for: .milliseconds(20))
      }
      #expect(reports.entries[0].contains("“upload” cannot start because the queue “sync” is suspended."))
      source.cancel()
    }
  }
  #endif

  @Test func aGroupThatIsLateAndTimesOut() async {
    let (clock, held, queue) = (ManualClock(), Held().named("draining"), queue)
    let group = GroupOperation([held]).named("Import")
    group.clock = clock
    group.timeout = .seconds(90)
    let task = Task { try await run(group, on: queue, reportingAfter: .seconds(60)) }
    await held.begun.opened()
    await clock.waitForSleepers(2)
    clock.advance(by: .seconds(60))
    let text = "Import is late. 2 operations have not finished, in the group “Import”"
    while !logged.entries.contains(where: { $0.hasPrefix(text) }) { await Task.yield() }
    clock.advance(by: .seconds(30))
    await group.finished()
    #expect(group.stallReport().entries.isEmpty)

    for case let member as AsyncOperation in group.operations {
      log("\(member.stallReport())")
    }

    #expect(logged.entries.contains { $0.contains("“draining” was cancelled, but ") })
    held.finish()
    _ = await task.result
    await held.finished()
    await queue.finished()
  }

  // MARK: Sentences

  @Test func itNeverFinishes() async throws {
    let (load, show) = (Load().named("load"), operation("show"))
    load ==> show
    queue.addOperations([load, show])
    let entries = try await report(of: queue, naming: 2).entries
    try expectOnPage(try #require(entries.first { $0.operation == "load" }).description)
    load.cancel()
    try expectOnPage("was cancelled, but has been executing")
    #expect("\(queue.stallReport())".contains("was cancelled, but has been executing"))
    load.finish()
    await queue.finished()
  }

  @Test func itWasNeverAdded() async throws {
    let (login, upload, report) = (operation("login"), operation("upload"), operation("report"))
    login ==> upload ==> report
    queue.addOperations([upload, report])  // and login?
    try expectOnPage("\(queue.stallReport())")
    login.cancel()
    #expect(queue.stallReport().entries.allSatisfy { $0.cause == .notEnqueued })
    queue.addOperation(login)
    await queue.finished()
  }

  @Test func aCycle() async throws {
    let (first, second, third) = (operation("first"), operation("second"), operation("third"))
    first ==> second ==> third
    third ==> first
    queue.addOperations([first, second, third])
    let entries = queue.stallReport().entries
    #expect(entries.allSatisfy { $0.cause == .cycle })
    try expectOnPage(try #require(entries.first { $0.operation == "first" }).description)
    first.removeDependency(third)
    await queue.finished()
  }

  @Test func aCycleOverASlot() async throws {
    let (later, member) = (operation("later"), operation("member"))
    queue.maxConcurrentOperationCount = 1
    later ==> member
    let group = GroupOperation([member]).named("group")
    queue.addOperations([group, later])
    while !group.isExecuting { await Task.yield() }
    let entries = queue.stallReport().entries
    #expect(entries.count == 3 && entries.allSatisfy { $0.cause == .cycle })
    try expectOnPage(try #require(entries.first { $0.operation == "later" }).description)
    queue.maxConcurrentOperationCount = 2
    await queue.finished()
  }

  @Test func aSuspendedQueue() async throws {
    let (network, load, show) = (OperationQueue(), operation("load"), operation("show"))
    network.name = "network"
    network.isSuspended = true
    load ==> show
    network.addOperation(load)
    queue.addOperation(show)
    try expectOnPage("cannot start because the queue “network” is suspended", of: queue.stallReport())
    network.maxConcurrentOperationCount = 0
    network.isSuspended = false
    let sentence = "cannot start because maxConcurrentOperationCount of the queue “network” is 0"
    try expectOnPage(sentence, of: queue.stallReport())
    network.maxConcurrentOperationCount = OperationQueue.defaultMaxConcurrentOperationCount
    await queue.finished()
  }

  @Test func aWaitInside() async throws {
    let (queue, inner) = (queue, operation("inner"))
    queue.maxConcurrentOperationCount = 1
    let outer = ResultOperation {
      queue.addOperation(inner)
      inner.waitUntilFinished()  // keeps the only slot, and a thread
    }
    queue.addOperation(outer.named("outer"))
    let entries = try await report(of: queue, naming: 2).entries
    try expectOnPage(entries.map(\.description).joined(separator: "\n"))
    queue.maxConcurrentOperationCount = 2
    await queue.finished()
  }

  @Test func aKey() async throws {
    let (question, alert) = (Held().named("question"), operation("alert"))
    queue.addOperation(question.exclusive("dialog"))
    queue.addOperation(alert.exclusive("dialog"))
    try expectOnPage("waits for the key “dialog”, held by “question”", of: await report(of: queue, naming: 2))
    question.finish()
    await queue.finished()
  }

  #if !os(iOS) && !os(tvOS) && !os(watchOS) && !os(visionOS)
  /// In a separate process, whose main queue has no operations of other tests.
  @Test func theMainThread() async {
    await #expect(processExitsWith: .success) {
      let (snippets, blocked) = (DebuggingStallsSnippets(), Gate())
      let (queue, show, log) = (snippets.queue, operation("show"), operation("log"))

      @MainActor
      func showAndWait() {
        show ==> log
        OperationQueue.main.addOperation(show)
        queue.addOperation(log)
        log.waitUntilFinished()  // the main thread waits for what only it can do
      }

      let task = Task { @MainActor in
        blocked.open()
        showAndWait()
      }
      await blocked.opened()
      while queue.stallReport().entries.count < 2 { await Task.yield() }
      let sentence = "is about to start, as soon as the main thread gets to it"
      try snippets.expectOnPage(sentence, of: queue.stallReport())
      log.cancel()
      await task.value
      await show.finished()
      await OperationQueue.main.finished()
      await queue.finished()
    }
  }
  #endif

  @Test func aCondition() async throws {
    let (upload, session) = (operation("upload"), Session())
    upload.addCondition(OperationCondition(name: "signed in") { _ in try await session.signIn() })
    queue.addOperation(upload)
    try expectOnPage("its condition “signed in” is being evaluated", of: await report(of: queue, naming: 1))
    session.gate.open()
    await queue.finished()
  }

  @Test func aGroupThatHasNotBegun() async throws {
    let (login, download) = (operation("login"), operation("download"))
    let sync = GroupOperation().named("sync")
    login ==> sync
    sync.addOperation(download)
    queue.addOperation(sync)
    try expectOnPage("cannot begin before its group “sync”", of: queue.stallReport())
    queue.addOperation(login)
    await queue.finished()
  }

  @Test func aScheduler() async throws {
    let (clock, begun, end) = (ManualClock(), Gate(), DispatchSemaphore(value: 0))
    let scheduler = SerialScheduler(name: "disk", clock: clock)

    scheduler.watchdog = SchedulerWatchdog(limit: .milliseconds(100)) {
      report in log("\(report)")
    }

    scheduler.schedule {
      begun.open()
      end.wait()
    }
    await begun.opened()
    clock.advance(by: .milliseconds(150))
    end.signal()
    await scheduler.drained()
    let start = "An event scheduled at DocumentationTests/DebuggingStalls.swift:"
    let text = "has held the scheduler “disk” for more than 0.1 seconds."
    #expect(logged.entries.contains { $0.hasPrefix(start) && $0.hasSuffix(text) })
  }
}
