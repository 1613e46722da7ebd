import Foundation
import Operations
import OperationsTestSupport
import Testing

/// The timeline, the summary and the graph of a trace.
@Suite(.timeLimit(.minutes(5)))
struct TraceTimelineTests {
  private let clock = ManualClock()
  private let tracer: OperationTracer
  private let queue = OperationQueue()

  init() { tracer = OperationTracer(clock: clock) }

  /// Traces and runs operations. The clock advances by 10 ms for each count of executing delays.
  private func run(_ operations: [AsyncOperation], executing counts: [Int] = []) async {
    tracer.trace(operations, in: queue)
    await clock.tick(sleepers: counts)
    await queue.finished()
  }

  /// Runs a group with a chain of two members, a failing member, and a cancelled one.
  private func runImporter() async {
    let (check, skipped) = (NoteOperation("Check", Journal(), failing: TestError("no")), operation("Skipped"))
    skipped.cancel()
    let group = GroupOperation("Import") {
      clock.delay("Download", 20) ==> clock.delay("Parse", 10)
      check
      skipped
    }
    tracer.trace([group], in: queue)
    await check.finished()
    await clock.tick(sleepers: [1, 1, 1])
    await queue.finished()
  }

  // MARK: The timeline

  @Test func timeline_isDrawnToScale() async {
    await runImporter()
    #expect(
      tracer.timeline(width: 60) == """
                    0 s                         30 ms
        Import      ├───────────────────────────────┤  30 ms, failed
          Download  ██████████████████████             20 ms
          Parse                           ███████████  10 ms
          Check     █                                  0 s, failed
          Skipped   ×                                  cancelled

        """
    )
  }

  @Test func timeline_isAsLongAndAsWideAsRequested() async {
    await run([GroupOperation((0..<50).map { operation("an operation with quite a long name, number \($0)") })])
    let lines = tracer.timeline(width: 70, lines: 10).split(separator: "\n")
    #expect(lines.count == 12 && lines.last == "… and 41 more." && lines.allSatisfy { $0.count <= 70 })
  }

  @Test func timelineOfLongNamesInNestedGroups_keepsItsWidthWithoutTrailingSpaces() async {
    var group = GroupOperation([operation("a member with quite a long name")])
    for number in 0...12 {
      group.named("a group with quite a long name, number \(number)")
      if number < 12 { group = GroupOperation([group]) }
    }
    let cancelled = operation("an operation that will be cancelled")
    cancelled.cancel()
    tracer.trace(cancelled)
    // There is nothing to draw for an operation that has finished without executing.
    let finished = operation("an operation that finishes before its start")
    finished.finish()
    await run([group, finished])
    for width in [40, 50, 60, 80] {
      let lines = tracer.timeline(width: width).split(separator: "\n")
      #expect(lines.count == 17 && lines.dropFirst().allSatisfy { $0.contains("…") })
      for line in lines { #expect(line.count <= width && line.last != " ", "\(width): “\(line)”") }
    }
    #expect(tracer.timeline() == tracer.timeline(width: 80))
  }

  @Test func names_areShortenedInTheMiddle_andMeasuredInColumns() {
    let names = [
      "/home/somebody/Documents/letters/1.txt", "日本語", "e\u{301}🍏", "esc\u{1B}[31m\nline", "\u{202E}turned around",
    ]
    tracer.trace(names.map(operation))
    let timeline = tracer.timeline()
    let lines = timeline.split(separator: "\n").dropFirst()
    #expect(lines.map { $0.components(separatedBy: "  ")[0] }.prefix(2) == ["/home/somebod…/letters/1.txt", "日本語"])
    #expect(lines.count == names.count && lines.allSatisfy { $0.hasSuffix("  pending") })
    #expect(!timeline.unicodeScalars.contains("\u{1B}") && !timeline.unicodeScalars.contains("\u{202E}"))
  }

  // MARK: The summary

  @Test func summary_addsUp() async {
    let group = GroupOperation("group") {
      clock.delay("b", 10) ==> clock.delay("c", 10)
      clock.delay("a", 20)
    }
    await run([group], executing: [2, 2])
    let summary = tracer.summary
    #expect(summary.operations == 3 && summary.elapsed == .milliseconds(20) && summary.busy == .milliseconds(40))
    #expect(summary.parallelism == 2 && summary.peak == 2 && summary.longestWait == nil)
    #expect(summary.criticalPath?.duration == .milliseconds(20))
    let sentences = "3 operations in 20 ms, 2.0 at once on average, 2 at most.\nCritical path by dependencies, 20 ms: "
    #expect(summary.description.hasPrefix(sentences) && !summary.description.contains("Longest wait"))
  }

  @Test(arguments: [false, true]) func longestWait_isForASlot(inAGroup: Bool) async {
    let delays = ["first", "second", "third"].map { clock.delay($0, 10) }
    let group = GroupOperation(inAGroup ? delays : [])
    group.maxConcurrentOperationCount = 1
    queue.maxConcurrentOperationCount = 1
    let operations: [AsyncOperation] = inAGroup ? [group] : delays
    tracer.trace(operations)
    clock.advance(by: .seconds(1))
    queue.addOperations(operations)
    await clock.tick(sleepers: [1, 1, 1])
    await queue.finished()
    #expect(tracer.records[0].enqueued == .seconds(1))
    // The second before the operations were enqueued does not count.
    #expect(tracer.summary.longestWait?.name == "third")
    #expect(tracer.summary.longestWait?.duration == .milliseconds(20))
  }

  // MARK: The graph

  @Test func graph_hasTheDurations() async {
    await runImporter()
    let graph = tracer.graph
    #expect(graph.criticalPath?.names == ["Download", "Parse"] && graph.criticalPath?.duration == .milliseconds(30))
    #expect(graph.nodes.map(\.state) == [.failed, .finished, .finished, .failed, .cancelled] && graph.cycle == nil)
    let durations = [30, 20, 10, 0].map { Duration.milliseconds($0) }
    #expect(graph.nodes.map(\.duration) == durations + [nil])
  }
}
