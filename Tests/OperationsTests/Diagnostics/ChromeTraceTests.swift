import Foundation
import Operations
import OperationsTestSupport
import Testing

/// The trace in the Trace Event Format.
@Suite(.timeLimit(.minutes(5)))
struct ChromeTraceTests {
  private let clock = ManualClock()
  private let tracer: OperationTracer

  init() { tracer = OperationTracer(clock: clock) }

  /// Runs a group of two downloads in a chain, an operation that waits for the group, one beside them, and a cancelled
  /// one.
  private func runImporter() async {
    let cancelled = operation("cancelled")
    cancelled.cancel()
    let group = GroupOperation("importer") {
      GroupOperation("downloads") { clock.delay("first", 10) ==> clock.delay("second", 10) } ==> operation("last")
      clock.delay("beside", 15)
      cancelled
    }
    tracer.trace([group], in: OperationQueue())
    await clock.tick(sleepers: [2, 2])
    await group.finished()
  }

  @Test func everyEvent_hasTheFieldsOfItsPhase_andARowWithItsOwnName() async throws {
    await runImporter()
    let events = try tracer.events()
    let names = events.filter { $0.name == "thread_name" }
    let rows = Set(names.compactMap(\.tid))
    #expect(rows.count == names.count && Set(names.compactMap { $0.arguments["name"] as? String }).count == names.count)
    // Perfetto puts the row with the number of the process before all others.
    #expect(!rows.contains(1))
    for event in events {
      #expect(event.name == "process_name" || rows.contains(event.tid ?? -1), "\(event)")
      #expect(event.name != nil && event.fields["pid"] is Int && event.tid != nil, "\(event)")
      #expect(event.start != nil || event.phase == "M", "\(event)")
      switch event.phase {
      case "X": #expect(event.duration ?? -1 > 0 && event.category != nil, "\(event)")
      case "i": #expect(event.fields["s"] as? String == "t", "\(event)")
      case "s": #expect(event.id != nil, "\(event)")
      case "f": #expect(event.id != nil && event.fields["bp"] as? String == "e", "\(event)")
      case "M":
        let isName = ["process_name", "thread_name"].contains(event.name)
        #expect(isName ? event.arguments["name"] is String : event.arguments["sort_index"] is Int, "\(event)")
      default: Issue.record("an event of an unknown phase: \(event)")
      }
    }
  }

  @Test func aGroup_isDrawnInsideItsGroup_andTimesAreInMicroseconds() async throws {
    await runImporter()
    let groups = try tracer.events().filter { $0.category == "group" }
    #expect(groups.map(\.name) == ["importer", "downloads"] && Set(groups.map(\.tid)).count == 1)
    let second = try #require(try tracer.events("X").first { $0.name == "second" })
    #expect(second.start == 10_000 && second.duration == 10_000)
    #expect(second.arguments["group"] as? String == "downloads")
    #expect(second.arguments["state"] as? String == "finished")
  }

  @Test func groupsAndDelaysAtTheSameTime_areOnSeparateRows() async throws {
    let outer = GroupOperation((0..<3).map { GroupOperation([clock.delay("\($0)", 10)]) })
    tracer.trace([outer], in: OperationQueue())
    await clock.tick(sleepers: [3])
    await outer.finished()
    for category in ["group", "operation"] {
      #expect(Set(try tracer.events().filter { $0.category == category }.map(\.tid)).count == 3)
    }
  }

  @Test func aGroupThatOutlivesItsGroup_isNotDrawnInsideIt() async throws {
    let (first, held) = (HeldOperation(), HeldOperation())
    let inner = GroupOperation([held])
    let outer = GroupOperation([first ==> inner, first])
    (outer.clock, outer.timeout) = (clock, .seconds(5))
    tracer.trace([outer], in: OperationQueue())
    await first.begun.opened()
    clock.advance(by: .seconds(1))
    first.gate.open()
    await held.begun.opened()
    clock.advance(by: .seconds(4))
    await outer.finished()
    clock.advance(by: .seconds(5))
    held.gate.open()
    await inner.finished()
    #expect(tracer.records.map(\.duration) == [.seconds(5), .seconds(9), .seconds(1), .seconds(9)])
    try expectNesting(tracer)
  }

  @Test func anOperationThatOutlivesItsStarter_isNotOnItsRow() async throws {
    let inner = AsyncBlockOperation { [clock] operation in
      clock.advance(by: .seconds(8))
      operation.finish()
    }
    let outer = AsyncBlockOperation { [clock] _ in
      clock.advance(by: .seconds(1))
      inner.start()
    }
    (outer.clock, outer.timeout) = (clock, .seconds(5))
    tracer.trace([outer, inner])
    await start(outer)
    try expectNesting(tracer)
  }

  // MARK: Arrows and marks

  @Test func dependencies_areArrowsBetweenExecutions() async throws {
    await runImporter()
    let executions = try tracer.events("X")
    func name(at arrow: TraceEvent) -> String? {
      executions.last { $0.tid == arrow.tid && $0.begin <= arrow.begin && arrow.begin < $0.end }?.name
    }
    let arrows = Dictionary(grouping: try tracer.events("s", "f"), by: \.id)
    #expect(arrows.count == 2)
    // The start of an arrow is written before its end.
    for ends in arrows.values { #expect(ends.map(\.phase) == ["s", "f"] && ends[0].begin <= ends[1].begin) }
    #expect(Set(arrows.values.map { $0.map { name(at: $0) } }) == [["first", "second"], ["downloads", "last"]])
  }

  @Test func arrows_neverLeadBackInTime() async throws {
    let (first, second, queue) = (HeldOperation(), AsyncOperation(), OperationQueue())
    first ==> second
    tracer.trace([first, second])
    second.removeDependency(first)
    await queue.add(first, until: first.begun)
    clock.advance(by: .seconds(5))
    queue.addOperation(second)
    await second.finished()
    clock.advance(by: .seconds(5))
    await queue.drained(opening: [first.gate])
    #expect(try tracer.events("s", "f").map(\.start) == [5_000_000, 5_000_000])
  }

  @Test func cancelledWithoutExecution_hasAMark() async throws {
    await runImporter()
    let mark = try #require(try tracer.events("i").first)
    #expect(mark.name == "cancelled cancelled")
    let row = try tracer.events("M").first { $0.name == "thread_name" && $0.tid == mark.tid }
    #expect(row?.arguments["name"] as? String == "never executed")
    #expect(try !tracer.events("X").contains { $0.name == "cancelled" })
  }

  // MARK: Oddities

  @Test func anUnfinishedOperation_endsNow() async throws {
    let held = HeldOperation()
    tracer.trace([held], in: OperationQueue())
    await held.begun.opened()
    clock.advance(by: .milliseconds(7))
    let event = try #require(try tracer.events("X").first)
    #expect(event.duration == 7000 && event.arguments["state"] as? String == "executing")
    held.gate.open()
    await held.finished()
  }

  /// Perfetto 52 reads the quotation mark behind a backslash as part of the text, and then rejects the file.
  @Test(arguments: ["C:\\", "\\\\"]) func aNameThatEndsInABackslash_isOpenedByPerfetto(name: String) async {
    let operation = operation(name)
    tracer.trace([operation], in: OperationQueue())
    await operation.finished()
    #expect(!String(decoding: tracer.chromeTrace(), as: UTF8.self).contains("\\\\\""))
  }
}
