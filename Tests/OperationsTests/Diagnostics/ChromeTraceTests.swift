import Foundation
import Operations
import OperationsTestSupport
import Testing

/// The trace against what the Trace Event Format asks for.
@Suite(.timeLimit(.minutes(5)))
struct ChromeTraceTests {
  private let clock = ManualClock()
  private let tracer: OperationTracer

  init() { tracer = OperationTracer(clock: clock) }

  private func delay(_ name: String, _ milliseconds: Int) -> DelayOperation {
    let operation = DelayOperation(.milliseconds(milliseconds)).named(name)
    operation.clock = clock
    return operation
  }

  /// Two downloads, one after the other, in a group; what waits for the group; a pause beside them; and one that is
  /// cancelled.
  private func runImporter() async {
    let (first, second) = (delay("first", 10), delay("second", 10))
    let downloads = GroupOperation("downloads") { first ==> second }
    let (last, cancelled) = (operation("last"), operation("cancelled"))
    cancelled.cancel()
    let group = GroupOperation("importer") {
      downloads ==> last
      delay("beside", 15)
      cancelled
    }
    tracer.trace(group)
    OperationQueue().addOperation(group)
    for _ in 0..<2 {
      await clock.waitForSleepers(2)
      clock.advance(by: .milliseconds(10))
    }
    await group.finished()
  }

  @Test func everyEventHasWhatItsPhaseAsksFor() async throws {
    await runImporter()
    for event in try tracer.events() {
      #expect(event.name != nil && event.pid != nil && event.tid != nil, "\(event)")
      switch event.phase {
      case "X": #expect(event.start != nil && event.duration ?? -1 > 0 && event.category != nil, "\(event)")
      case "i": #expect(event.start != nil && event.scope == "t", "\(event)")
      case "s": #expect(event.start != nil && event.id != nil, "\(event)")
      case "f": #expect(event.start != nil && event.id != nil && event.binding == "e", "\(event)")
      case "M":
        let isName = ["process_name", "thread_name"].contains(event.name)
        #expect(isName ? event.arguments["name"] is String : event.arguments["sort_index"] is Int, "\(event)")
      default: Issue.record("an event of an unknown phase: \(event)")
      }
    }
  }

  @Test func aGroupIsDrawnInsideTheOneAroundItAndTimesAreInMicroseconds() async throws {
    await runImporter()
    let groups = try tracer.events().filter { $0.category == "group" }
    #expect(groups.map(\.name) == ["importer", "downloads"] && Set(groups.map(\.tid)).count == 1)
    let second = try #require(try tracer.events("X").first { $0.name == "second" })
    #expect(second.start == 10_000 && second.duration == 10_000)
    #expect(second.arguments["group"] as? String == "downloads")
    #expect(second.arguments["state"] as? String == "finished")
  }

  @Test func everyRowHasANameAndOneUse() async throws {
    await runImporter()
    let events = try tracer.events()
    let names = events.filter { $0.name == "thread_name" }
    let rows = Set(names.compactMap(\.tid))
    #expect(rows.count == names.count && Set(names.compactMap { $0.arguments["name"] as? String }).count == names.count)
    #expect(events.allSatisfy { $0.name == "process_name" || rows.contains($0.tid ?? -1) })
    // Perfetto puts the row that has the number of the process before all others.
    #expect(!rows.contains(1))
  }

  @Test func groupsAtTheSameTimeAreOnRowsOfTheirOwn() async throws {
    let outer = GroupOperation((0..<3).map { GroupOperation([delay("\($0)", 10)]) })
    tracer.trace(outer)
    OperationQueue().addOperation(outer)
    await clock.waitForSleepers(3)
    clock.advance(by: .milliseconds(10))
    await outer.finished()
    // And so are the delays, which hold no thread.
    for category in ["group", "operation"] {
      #expect(Set(try tracer.events().filter { $0.category == category }.map(\.tid)).count == 3)
    }
  }

  @Test func aGroupThatOutlivesTheOneAroundItIsNotDrawnInsideIt() async throws {
    let (first, held) = (HeldOperation(), HeldOperation())
    let inner = GroupOperation([held])
    first ==> inner
    let outer = GroupOperation([inner, first])
    (outer.clock, outer.timeout) = (clock, .seconds(5))
    tracer.trace(outer)
    OperationQueue().addOperation(outer)
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

  @Test func anOperationThatOutlivesItsStarterIsNotOnItsRow() async throws {
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

  @Test func dependenciesAreArrowsBetweenExecutions() async throws {
    await runImporter()
    let executions = try tracer.events("X")
    func name(at arrow: TraceEvent) -> String? {
      executions.last { $0.tid == arrow.tid && $0.begin <= arrow.begin && arrow.begin < $0.end }?.name
    }
    let arrows = Dictionary(grouping: try tracer.events("s", "f"), by: \.id)
    #expect(arrows.count == 2)
    let pairs = try arrows.values.map { ends -> [String?] in
      let from = try #require(ends.first { $0.phase == "s" })
      let to = try #require(ends.first { $0.phase == "f" })
      #expect(from.begin <= to.begin)
      return [name(at: from), name(at: to)]
    }
    #expect(Set(pairs) == [["first", "second"], ["downloads", "last"]])
  }

  @Test func noArrowLeadsBackInTime() async throws {
    let (first, second, queue) = (HeldOperation(), AsyncOperation(), OperationQueue())
    first ==> second
    tracer.trace([first, second])
    second.removeDependency(first)
    queue.addOperation(first)
    await first.begun.opened()
    clock.advance(by: .seconds(5))
    queue.addOperation(second)
    await second.finished()
    clock.advance(by: .seconds(5))
    first.gate.open()
    await queue.finished()
    #expect(try tracer.events("s", "f").map(\.start) == [5_000_000, 5_000_000])
  }

  @Test func whatWasCancelledHasAMarkAlsoIfItNeverExecuted() async throws {
    await runImporter()
    let mark = try #require(try tracer.events("i").first)
    #expect(mark.name == "cancelled cancelled")
    let row = try tracer.events("M").first { $0.name == "thread_name" && $0.tid == mark.tid }
    #expect(row?.arguments["name"] as? String == "never executed")
    #expect(try !tracer.events("X").contains { $0.name == "cancelled" })
  }

  // MARK: What is odd

  @Test func whatHasNotFinishedEndsNow() async throws {
    let held = HeldOperation()
    tracer.trace(held)
    OperationQueue().addOperation(held)
    await held.begun.opened()
    clock.advance(by: .milliseconds(7))
    let event = try #require(try tracer.events("X").first)
    #expect(event.duration == 7000 && event.arguments["state"] as? String == "executing")
    held.gate.open()
    await held.finished()
  }

  /// Perfetto 52 takes the quotation mark behind a backslash for part of the text, and then the file for broken.
  @Test(arguments: ["C:\\", "\\\\"]) func perfettoOpensATraceOfANameThatEndsInABackslash(name: String) async {
    let operation = operation(name)
    tracer.trace(operation)
    OperationQueue().addOperation(operation)
    await operation.finished()
    #expect(!String(decoding: tracer.chromeTrace(), as: UTF8.self).contains("\\\\\""))
  }
}
