import Foundation
import Operations
import OperationsTestSupport
import Testing

private let logged = Journal<String>()

private func log(_ text: String) { logged.write(text) }

/// The sentences on the page are those of real reports.
@Suite(.timeLimit(.minutes(5)))
struct DebuggingStallsSnippets {
  private let queue = OperationQueue()

  init() { queue.name = "sync" }

  /// Returns the text with one space between words, and with one time for all times.
  private static func plain(_ text: String) -> String {
    text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
      .replacing(/for [0-9.]+ (?:µs|ms|s|min)/, with: "for 42 s")
  }

  /// Expects that a report and the page contain a part of a sentence.
  private func expectOnPage(_ text: String, of report: StallReport) throws {
    #expect(Self.plain("\(report)").contains(text), "\(report)")
    try expectOnPage(text)
  }

  private func expectOnPage(_ text: String) throws {
    let page = try Repository.file("Sources/Operations/Operations.docc/DebuggingStalls.md")
    #expect(Self.plain(page.lines.joined(separator: " ")).contains(Self.plain(text)), "\(text)")
  }

  /// Expects that the page contains the sentence on the operation with this name.
  private func expectOnPage(entryOf name: String, in report: StallReport) throws {
    try expectOnPage(try #require(report.entries.first { $0.operation == name }).description)
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

  /// Returns the report on a cycle, of which one gives way soon, on a busy machine before the report is made.
  private func report(ofACycleOf name: String, _ make: () async -> StallReport) async throws -> StallReport {
    while true {
      try Task.checkCancellation()
      await queue.finished()
      let report = await make()
      if report.entries.contains(where: { $0.operation == name && $0.cause == .cycle }) { return report }
    }
  }

  #if !os(iOS) && !os(tvOS) && !os(watchOS) && !os(visionOS)
  /// In a separate process, because the signal is for the whole process.
  @Test func bySignal() async {
    await #expect(processExitsWith: .success) {
      let queue = OperationQueue()
      queue.isSuspended = true
      queue.addOperation(operation("upload"))

      signal(SIGUSR1, SIG_IGN)  // or the signal ends the program
      let source = DispatchSource.makeSignalSource(signal: SIGUSR1, queue: .global())
      source.setEventHandler { log("\(queue.stallReport())") }
      source.activate()  // retain the source

      // A signal that arrives before the source is active is ignored.
      while logged.count == 0 {
        kill(getpid(), SIGUSR1)
        try await Task.sleep(for: .milliseconds(20))
      }
      #expect(logged.entries[0].contains("“upload” cannot start because its queue is suspended."))
      source.cancel()
    }
  }

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

  // MARK: Causes

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
    let report = try await report(ofACycleOf: "first") {
      let (first, second, third) = (operation("first"), operation("second"), operation("third"))
      first ==> second ==> third ==> first
      queue.addOperations([first, second, third])
      return queue.stallReport()
    }
    try expectOnPage(entryOf: "first", in: report)
    await queue.finished()
  }

  @Test func aCycleOverASlot() async throws {
    queue.maxConcurrentOperationCount = 1
    let report = try await report(ofACycleOf: "later") {
      let (later, member) = (operation("later"), operation("member"))
      later ==> member
      let group = GroupOperation([member]).named("group")
      queue.addOperations([group, later])
      while !group.isExecuting, !group.isFinished { await Task.yield() }
      return queue.stallReport()
    }
    try expectOnPage(entryOf: "group", in: report)
    queue.maxConcurrentOperationCount = 2
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

  @Test func aWaitThatCannotEnd() async throws {
    let dependent = operation("dependent")
    let task = TaskOperation { try await dependent.completed() }.named("task")
    task ==> dependent
    queue.addOperations([dependent, task])
    await task.finished()
    try expectOnPage(#require(task.errors.first as? OperationError).message)
    await queue.finished()
  }

  @Test func otherCauses() async throws {
    let (network, signedIn) = (OperationQueue(), Gate())
    let (load, question) = (Held().named("load"), Held().named("question"))
    let (download, upload, login) = (operation("download"), operation("upload"), operation("login"))
    let (store, show) = (operation("store"), operation("show"))
    network.name = "network"
    network.isSuspended = true
    network.addOperation(store)
    store ==> show
    upload.addCondition(OperationCondition(name: "signed in") { _ in await signedIn.opened() })
    let sync = GroupOperation([download]).named("sync")
    login ==> sync
    queue.addOperation(question.exclusive("dialog"))
    queue.addOperation(operation("alert").exclusive("dialog"))
    queue.addOperations([load, show, upload, sync])
    let report = try await report(of: queue, naming: 9)
    try expectOnPage(entryOf: "load", in: report)
    let sentences = [
      "cannot start because the queue “network” is suspended", "waits for the key “dialog”, held by “question”",
      "its condition “signed in” is being evaluated", "cannot begin before its group “sync”",
    ]
    for sentence in sentences { try expectOnPage(sentence, of: report) }
    load.cancel()
    network.maxConcurrentOperationCount = 0
    network.isSuspended = false
    let others = [
      "was cancelled, but has been executing",
      "cannot start because maxConcurrentOperationCount of the queue “network” is 0",
    ]
    for sentence in others { try expectOnPage(sentence, of: queue.stallReport()) }
    network.maxConcurrentOperationCount = OperationQueue.defaultMaxConcurrentOperationCount
    for gate in [load.gate, question.gate, signedIn] { gate.open() }
    queue.addOperation(login)
    await queue.finished()
  }

  // MARK: Limits

  @Test func theMembersOfAGroupThatTimedOut() async {
    let (clock, held) = (ManualClock(), Held().named("draining"))
    let group = GroupOperation([held]).named("Import")
    group.clock = clock
    group.timeout = .seconds(90)
    queue.addOperation(group)
    await held.begun.opened()
    await clock.waitForSleepers(1)
    clock.advance(by: .seconds(90))
    #expect(group.isFinished && group.stallReport().entries.isEmpty)

    for case let member as AsyncOperation in group.operations { log("\(member.stallReport())") }

    #expect(logged.entries.contains { $0.contains("“draining” was cancelled, but ") })
    held.gate.open()
    await held.finished()
  }

  @Test func aScheduler() async throws {
    let (clock, begun, end) = (ManualClock(), Gate(), DispatchSemaphore(value: 0))
    let scheduler = SerialScheduler(name: "disk", clock: clock)

    scheduler.watchdog = SchedulerWatchdog(limit: .milliseconds(100)) { report in log("\(report)") }

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
