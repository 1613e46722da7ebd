import Foundation
import Operations
import OperationsTestSupport
import Testing

/// The trace against what the Trace Event Format asks for.
@Suite struct ChromeTraceTests {
  private let journal = Journal<String>()
  private let clock = ManualClock()
  private let tracer: OperationTracer

  init() { tracer = OperationTracer(clock: clock) }

  private func events() throws -> [TraceEvent] {
    let trace = try #require(try JSONSerialization.jsonObject(with: tracer.chromeTrace()) as? [String: Any])
    #expect(trace["displayTimeUnit"] as? String == "ms")
    return try #require(trace["traceEvents"] as? [[String: Any]]).map { TraceEvent($0) }
  }

  private func delay(_ name: String, _ milliseconds: Int) -> DelayOperation {
    let operation = DelayOperation(.milliseconds(milliseconds)).named(name)
    operation.clock = clock
    return operation
  }

  /// Two downloads, one after the other, each with a check inside; a pause beside them; and one that is cancelled.
  private func runImporter() async {
    let (first, second) = (delay("first", 10), delay("second", 10))
    let downloads = GroupOperation("downloads") { first ==> second }
    let cancelled = NoteOperation("cancelled", journal)
    cancelled.cancel()
    let (last, beside) = (NoteOperation("last", journal), delay("beside", 15))
    let group = GroupOperation("importer") {
      downloads ==> last
      beside
      cancelled
    }
    tracer.trace(group)
    OperationQueue().addOperation(group)
    await clock.waitForSleepers(2)
    clock.advance(by: .milliseconds(10))
    await clock.waitForSleepers(2)
    clock.advance(by: .milliseconds(10))
    await group.finished()
  }

  @Test func everyEventHasWhatItsPhaseAsksFor() async throws {
    await runImporter()
    for event in try events() {
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

  @Test func timesAreInMicroseconds() async throws {
    await runImporter()
    let second = try #require(try events().first { $0.phase == "X" && $0.name == "second" })
    #expect(second.start == 10_000)
    #expect(second.duration == 10_000)
    #expect(second.arguments["group"] as? String == "downloads")
    #expect(second.arguments["state"] as? String == "finished")
  }

  @Test func everyRowHasANameAndOneUse() async throws {
    await runImporter()
    let events = try events()
    let names = events.filter { $0.name == "thread_name" }
    #expect(Set(names.compactMap(\.tid)).count == names.count)
    #expect(Set(names.compactMap { $0.arguments["name"] as? String }).count == names.count)
    let rows = Set(names.compactMap(\.tid))
    #expect(events.allSatisfy { $0.name == "process_name" || rows.contains($0.tid ?? -1) })
    // Perfetto puts the row that has the number of the process before all others.
    #expect(!rows.contains(1))
  }

  @Test func executionsOnARowAreInsideEachOtherOrApart() async throws {
    await runImporter()
    for (_, events) in Dictionary(grouping: try events().filter({ $0.phase == "X" }), by: \.tid) {
      for (index, one) in events.enumerated() {
        for other in events.dropFirst(index + 1) {
          let isApart = one.end <= other.begin || other.end <= one.begin
          let isInside =
            (one.begin <= other.begin && other.end <= one.end) || (other.begin <= one.begin && one.end <= other.end)
          #expect(isApart || isInside, "\(one) \(other)")
        }
      }
    }
  }

  @Test func aGroupIsDrawnInsideTheOneAroundIt() async throws {
    await runImporter()
    let groups = try events().filter { $0.category == "group" }
    #expect(groups.map(\.name) == ["importer", "downloads"])
    #expect(Set(groups.map(\.tid)).count == 1)
  }

  @Test func groupsAtTheSameTimeAreOnRowsOfTheirOwn() async throws {
    let groups = (0..<3).map { GroupOperation([delay("\($0)", 10)]).named("group \($0)") }
    let outer = GroupOperation(groups).named("outer")
    tracer.trace(outer)
    OperationQueue().addOperation(outer)
    await clock.waitForSleepers(3)
    clock.advance(by: .milliseconds(10))
    await outer.finished()
    let events = try events()
    #expect(Set(events.filter { $0.category == "group" }.map(\.tid)).count == 3)
    // And so are the delays, which hold no thread.
    #expect(Set(events.filter { $0.category == "operation" }.map(\.tid)).count == 3)
  }

  @Test func dependenciesAreArrowsBetweenExecutions() async throws {
    await runImporter()
    let events = try events()
    let executions = events.filter { $0.phase == "X" }
    let arrows = Dictionary(grouping: events.filter { ["s", "f"].contains($0.phase) }, by: \.id)
    #expect(arrows.count == 2)
    var pairs: Set<[String]> = []
    for (_, ends) in arrows {
      let from = try #require(ends.first { $0.phase == "s" })
      let to = try #require(ends.first { $0.phase == "f" })
      #expect(from.begin <= to.begin)
      func around(_ arrow: TraceEvent) -> [String] {
        executions.filter { $0.tid == arrow.tid && $0.begin <= arrow.begin && arrow.begin < $0.end }.compactMap(\.name)
      }
      pairs.insert([around(from).last ?? "", around(to).last ?? ""])
    }
    #expect(pairs == [["first", "second"], ["downloads", "last"]])
  }

  @Test func whatWasCancelledHasAMarkAlsoIfItNeverExecuted() async throws {
    await runImporter()
    let events = try events()
    let mark = try #require(events.first { $0.phase == "i" })
    #expect(mark.name == "cancelled cancelled")
    let row = events.first { $0.name == "thread_name" && $0.tid == mark.tid }
    #expect(row?.arguments["name"] as? String == "never executed")
    #expect(!events.contains { $0.phase == "X" && $0.name == "cancelled" })
  }

  @Test func whatHasNotFinishedEndsNow() async throws {
    let held = HeldOperation().named("held")
    tracer.trace(held)
    OperationQueue().addOperation(held)
    await held.begun.opened()
    clock.advance(by: .milliseconds(7))
    let event = try #require(try events().first { $0.phase == "X" })
    #expect(event.duration == 7000)
    #expect(event.arguments["state"] as? String == "executing")
    held.gate.open()
    await held.finished()
  }

  @Test func namesAreWhatTheyAre() async throws {
    let names = ["\"quoted\"", "back\\slash", "two\nlines", "\u{1}", "🍏 日本語", "</script>"]
    let group = GroupOperation(names.map { NoteOperation($0, journal) })
    tracer.trace(group)
    OperationQueue().addOperation(group)
    await group.finished()
    #expect(Set(try events().filter { $0.category == "operation" }.compactMap(\.name)) == Set(names))
  }

  @Test func aTracerThatFollowedNothingHasATraceToo() throws {
    #expect(try events().allSatisfy { $0.phase == "M" })
  }
}

private struct TraceEvent: CustomStringConvertible {
  private let fields: [String: Any]

  init(_ fields: [String: Any]) { self.fields = fields }

  var name: String? { fields["name"] as? String }
  var phase: String? { fields["ph"] as? String }
  var category: String? { fields["cat"] as? String }
  var binding: String? { fields["bp"] as? String }
  var scope: String? { fields["s"] as? String }
  var pid: Int? { fields["pid"] as? Int }
  var tid: Int? { fields["tid"] as? Int }
  var id: Int? { fields["id"] as? Int }
  var start: Double? { (fields["ts"] as? NSNumber)?.doubleValue }
  var duration: Double? { (fields["dur"] as? NSNumber)?.doubleValue }
  var begin: Double { start ?? -1 }
  var end: Double { begin + (duration ?? 0) }
  var arguments: [String: Any] { fields["args"] as? [String: Any] ?? [:] }
  var description: String { "\(fields)" }
}
