import Foundation
import Operations
import OperationsTestSupport
import Soak
import Testing

/// What an `OperationTracer` promises, from its interface alone.
@Suite(.timeLimit(.minutes(5)))
struct TracerContractTests {
  private let clock = ManualClock()
  private let queue = OperationQueue()

  private func record(_ name: String, of tracer: OperationTracer) throws -> OperationTracer.Record {
    try #require(tracer.records.first { $0.name == name })
  }

  private struct Trace: Decodable {
    struct Event: Decodable {
      let name: String
      let ph: String
      let ts: Double?
      let dur: Double?
      let pid: Int
      let tid: Int
      let id: Int?
    }

    let traceEvents: [Event]
  }

  private func events(of tracer: OperationTracer) throws -> [Trace.Event] {
    try JSONDecoder().decode(Trace.self, from: tracer.chromeTrace()).traceEvents
  }

  /// A group of two, one after the other, for 3 and 4 seconds, a second after it was traced.
  private func traced() async -> OperationTracer {
    let (a, b) = (HeldOperation().named("a"), HeldOperation().named("b"))
    a ==> b
    let group = GroupOperation([a, b]).named("group")
    let tracer = OperationTracer(clock: clock)
    tracer.trace(group)
    clock.advance(by: .seconds(1))
    queue.addOperation(group)
    await a.begun.opened()
    clock.advance(by: .seconds(3))
    a.gate.open()
    await b.begun.opened()
    clock.advance(by: .seconds(4))
    b.gate.open()
    await group.finished()
    return tracer
  }

  @Test func nothingWasTraced() throws {
    let tracer = OperationTracer()
    #expect(tracer.records.isEmpty && tracer.graph.nodes.isEmpty && tracer.summary.operations == 0)
    #expect(tracer.summary.criticalPath == nil && tracer.summary.parallelism == 0)
    #expect(try events(of: tracer).allSatisfy { $0.ph == "M" } && !tracer.timeline().isEmpty)
  }

  @Test func everyStationHasItsTime() async throws {
    let tracer = await traced()
    let (group, a, b) = try (record("group", of: tracer), record("a", of: tracer), record("b", of: tracer))
    #expect(group.isGroup && a.group == group.id && b.group == group.id && b.dependencies == [a.id])
    #expect(group.created == .zero && group.started == .seconds(1) && group.finished == .seconds(8))
    #expect(a.created == .zero && a.started == .seconds(1) && a.finished == .seconds(4) && a.duration == .seconds(3))
    #expect(b.ready == .seconds(4) && b.started == .seconds(4) && b.finished == .seconds(8))
    #expect([group, a, b].allSatisfy { $0.state == .finished && $0.cancelled == nil && $0.worker != nil })
    #expect(tracer.graph.cycle == nil && tracer.graph.criticalPath?.names == ["a", "b"])
    #expect(tracer.graph.nodes.map(\.duration) == [.seconds(7), .seconds(3), .seconds(4)])
  }

  @Test func theSummaryAddsUp() async {
    let summary = await traced().summary
    #expect(summary.operations == 2 && summary.elapsed == .seconds(7) && summary.busy == .seconds(7))
    #expect(summary.parallelism == 1 && summary.peak == 1 && summary.criticalPath?.duration == .seconds(7))
    #expect("\(summary)".contains("a → b"))
  }

  @Test func whoWaitedLongestForATurn() async {
    let narrow = OperationQueue.limited(to: 1)
    let (first, second) = (HeldOperation().named("first"), HeldOperation().named("second"))
    let tracer = OperationTracer(clock: clock)
    tracer.trace([first, second])
    narrow.addOperations([first, second])
    await first.begun.opened()
    clock.advance(by: .seconds(5))
    first.gate.open()
    await second.begun.opened()
    second.gate.open()
    await second.finished()
    #expect(tracer.summary.longestWait?.name == "second" && tracer.summary.longestWait?.duration == .seconds(5))
  }

  @Test func nobodyWaited() async {
    let (operation, tracer) = (AsyncOperation().named("a"), OperationTracer(clock: clock))
    tracer.trace(operation)
    queue.addOperation(operation)
    await operation.finished()
    #expect(!"\(tracer.summary)".contains("Longest wait"), "\(tracer.summary)")
  }

  @Test func membersThatAreAddedLaterAreFollowed() async throws {
    let group = GroupOperation([]).named("group")
    let (held, late, nested) = (
      HeldOperation().named("held"), AsyncOperation().named("late"), GroupOperation().named("in")
    )
    let tracer = OperationTracer(clock: clock)
    tracer.trace(group)
    group.addOperation(held)
    queue.addOperation(group)
    await held.begun.opened()
    clock.advance(by: .seconds(2))
    // Without a member the nested group would be over at once.
    held ==> [late, nested]
    group.addOperations([late, nested])
    nested.addOperation(AsyncOperation().named("in it"))
    held.gate.open()
    await group.finished()
    #expect(try record("late", of: tracer).created == .seconds(2))
    #expect(try record("late", of: tracer).dependencies == [record("held", of: tracer).id])
    #expect(try record("in it", of: tracer).group == record("in", of: tracer).id)
    #expect(tracer.records.map(\.id) == Array(tracer.records.indices))
  }

  @Test func attemptsOfARetryAreFollowed() async throws {
    let retry = RetryOperation(attempts: 3) { number in
      ResultOperation { if number < 3 { throw TestError("no \(number)") } else { number } }.named("attempt \(number)")
    }.named("retry")
    let tracer = OperationTracer()
    tracer.trace(retry)
    queue.addOperation(retry)
    await retry.finished()
    let attempts = tracer.records.filter { $0.name.hasPrefix("attempt") }
    #expect(attempts.map(\.state) == [.failed, .failed, .finished] && attempts[0].error?.contains("no 1") == true)
    #expect(try attempts.allSatisfy { try $0.group == record("retry", of: tracer).id })
  }

  @Test func tracingTwiceIsTracingOnceAndTwoTracersAreTwo() async {
    let operation = AsyncOperation()
    let tracers = [OperationTracer(), OperationTracer()]
    for tracer in tracers { for _ in 0..<3 { tracer.trace([operation, operation]) } }
    queue.addOperation(operation)
    await operation.finished()
    #expect(tracers.allSatisfy { $0.records.count == 1 && $0.records[0].finished != nil })
  }

  @Test func cancelledOnesHaveAMark() async throws {
    let (held, waiting) = (HeldOperation().named("held"), AsyncOperation().named("waiting"))
    held ==> waiting
    let tracer = OperationTracer(clock: clock)
    tracer.trace([held, waiting])
    queue.addOperations([held, waiting])
    await held.begun.opened()
    clock.advance(by: .seconds(1))
    waiting.cancel()
    await waiting.finished()
    clock.advance(by: .seconds(1))
    held.cancel()
    #expect(try record("waiting", of: tracer).cancelled == .seconds(1) && record("waiting", of: tracer).started == nil)
    #expect(try record("held", of: tracer).cancelled == .seconds(2) && record("held", of: tracer).finished == nil)
    #expect(try events(of: tracer).filter { $0.ph == "i" }.count == 2 && tracer.timeline().contains("×"))
    held.gate.open()
    await held.finished()
    #expect(try record("held", of: tracer).state == .cancelled && record("held", of: tracer).duration == .seconds(2))
  }

  @Test func oneThatExecutesWhenItIsAttachedIsExecuting() async throws {
    let held = HeldOperation().named("held")
    queue.addOperation(held)
    await held.begun.opened()
    let tracer = OperationTracer()
    tracer.trace(held)
    let state = tracer.records[0].state
    held.gate.open()
    await held.finished()
    #expect(state == .executing)
    #expect(tracer.records[0].state == .finished)
  }

  @Test func plainMembersAreFollowed() async throws {
    let journal = Journal<String>()
    let (a, b) = (plain("a", journal), plain("b", journal))
    a ==> b
    let (group, tracer) = (GroupOperation([a, b]), OperationTracer())
    tracer.trace(group)
    queue.addOperation(group)
    await group.finished()
    let (first, second) = try (record("a", of: tracer), record("b", of: tracer))
    #expect(second.dependencies == [first.id] && first.finished! <= second.started!)
  }

  // MARK: Chrome's format

  @Test func intervalsNestOnEveryRowAndArrowsHaveTwoEnds() async throws {
    let tracer = await traced()
    let events = try events(of: tracer)
    #expect(events.filter { $0.ph == "X" }.map(\.name).sorted() == ["a", "b", "group"])
    #expect(events.first { $0.name == "b" }.map { [$0.ts, $0.dur] } == [4_000_000, 4_000_000])
    let (starts, ends) = (events.filter { $0.ph == "s" }, events.filter { $0.ph == "f" })
    #expect(starts.count == 1 && ends.count == 1 && starts[0].id == ends[0].id && starts[0].ts! <= ends[0].ts!)
    for (_, row) in Dictionary(grouping: events.filter { $0.ph == "X" }, by: \.tid) {
      for one in row {
        for other in row where one.ts! < other.ts! && other.ts! < one.ts! + one.dur! {
          #expect(other.ts! + other.dur! <= one.ts! + one.dur!, "\(one.name) and \(other.name) overlap")
        }
      }
    }
  }

  @Test func everyNameIsInTheTrace() async throws {
    let names = GraphContractTests.hostileNames + ["a\nb\tc\0d", String(repeating: "x", count: 10_000)]
    let group = GroupOperation(names.map { AsyncOperation().named($0) }).named("group")
    let tracer = OperationTracer()
    tracer.trace(group)
    queue.addOperation(group)
    await group.finished()
    // See below.
    let shown = names.map { $0.hasSuffix("\\") ? $0 + " " : $0 }
    #expect(try Set(shown).isSubset(of: events(of: tracer).filter { $0.ph == "X" }.map(\.name)))
  }

  /// Perfetto 52 takes the quotation mark behind a backslash for part of the text, and then the file for broken.
  @Test(arguments: ["C:\\", "\\\\"]) func perfettoOpensATraceOfANameThatEndsInABackslash(name: String) async {
    let (operation, tracer) = (AsyncOperation().named(name), OperationTracer())
    tracer.trace(operation)
    queue.addOperation(operation)
    await operation.finished()
    #expect(!String(decoding: tracer.chromeTrace(), as: UTF8.self).contains("\\\\\""))
  }

  // MARK: The timeline

  @Test func theTimelineHasALineForEachAndIsNoWiderThanAsked() async {
    let tracer = await traced()
    for width in [40, 60, 100, 200] {
      let lines = tracer.timeline(width: width).split(separator: "\n")
      #expect(lines.count == 4 && lines.allSatisfy { $0.count <= width })
      #expect(lines[1].hasPrefix("group") && lines[2].hasPrefix("  a") && lines[3].hasPrefix("  b"))
      #expect(lines[2].contains("3 s") && lines[3].contains("4 s") && lines[2].contains("█"))
    }
    #expect(tracer.timeline(lines: 1).contains("2 more"))
  }

  @Test func ofNoLinesItDoesNotSayThatNothingWasRecorded() async {
    #expect(await !traced().timeline(lines: 0).contains("Nothing has been recorded"))
  }

  @Test func aNameCannotTurnTheRestOfItsLineAround() async {
    let (operation, tracer) = (AsyncOperation().named("\u{202E}back\u{1B}[31m\n"), OperationTracer())
    tracer.trace(operation)
    queue.addOperation(operation)
    await operation.finished()
    let timeline = tracer.timeline()
    #expect(!timeline.unicodeScalars.contains("\u{1B}") && timeline.split(separator: "\n").count == 2)
    #expect(!timeline.unicodeScalars.contains("\u{202E}"))
  }

  // MARK: Being there

  @Test func itKeepsNoOperationAlive() async {
    let (live, tracer) = (LiveCount(), OperationTracer())
    tracer.trace(CountedGroup(live, [AsyncOperation().named("a")]).named("group"))
    await live.none()
    #expect(tracer.records.map(\.name) == ["group", "a"])
  }

  @Test func askingMeanwhileChangesNothing() async {
    let journal = Journal<String>()
    let operations = (0..<500).map { NoteOperation("\($0)", journal) }
    for (a, b) in zip(operations, operations.dropFirst()) { a ==> b }
    let (group, tracer, finished) = (GroupOperation(operations), OperationTracer(), Gate())
    tracer.trace(group)
    async let asking = onThread {
      while !finished.isOpen {
        _ = (tracer.timeline(), tracer.summary, tracer.graph.criticalPath)
        #expect((try? JSONSerialization.jsonObject(with: tracer.chromeTrace())) != nil)
      }
    }
    queue.addOperation(group)
    await group.finished()
    finished.open()
    _ = await asking
    #expect(journal.entries == (0..<500).map(String.init) && tracer.records.allSatisfy { $0.state == .finished })
  }
}
