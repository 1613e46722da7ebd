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

  /// An operation that executes for a time of the clock.
  private func delay(_ name: String, _ milliseconds: Int) -> DelayOperation {
    let operation = DelayOperation(.milliseconds(milliseconds)).named(name)
    operation.clock = clock
    return operation
  }

  /// Moves the clock on by 10 ms each time when there are as many delays under way as expected.
  private func run(_ operations: [AsyncOperation], underWay: [Int]) async {
    queue.addOperations(operations)
    for count in underWay {
      await clock.waitForSleepers(count)
      clock.advance(by: .milliseconds(10))
    }
    await queue.finished()
  }

  /// Runs a group in which one waits for another, one beside it fails, and one has been cancelled.
  private func runImporter() async {
    let (download, parse, skipped) = (delay("Download", 20), delay("Parse", 10), operation("Skipped"))
    let check = NoteOperation("Check", Journal(), failing: TestError("not signed"))
    skipped.cancel()
    let group = GroupOperation("Import") {
      download ==> parse
      check
      skipped
    }
    tracer.trace(group)
    queue.addOperation(group)
    await check.finished()
    await run([], underWay: [1, 1, 1])
  }

  // MARK: The timeline

  @Test func theTimelineIsDrawnToScale() async {
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

  @Test func theTimelineIsAsLongAndAsWideAsAsked() async {
    let group = GroupOperation((0..<50).map { operation("an operation with quite a long name, number \($0)") })
    tracer.trace(group)
    await run([group], underWay: [])
    let lines = tracer.timeline(width: 70, lines: 10).split(separator: "\n")
    #expect(lines.count == 12 && lines.last == "… and 41 more." && lines.allSatisfy { $0.count <= 70 })
  }

  @Test func theTimelineKeepsItsWidthWithLongNamesDeepInside() async {
    var group = GroupOperation([operation("a member with quite a long name")])
    for number in 0...12 {
      group.named("a group with quite a long name, number \(number)")
      if number < 12 { group = GroupOperation([group]) }
    }
    let cancelled = operation("an operation that will be cancelled")
    cancelled.cancel()
    tracer.trace([group, cancelled])
    await run([group], underWay: [])
    for width in [40, 50, 60, 80] {
      let lines = tracer.timeline(width: width).split(separator: "\n")
      #expect(lines.count == 16 && lines.dropFirst().allSatisfy { $0.contains("…") })
      for line in lines { #expect(line.count <= width && line.last != " ", "\(width): “\(line)”") }
    }
    #expect(tracer.timeline() == tracer.timeline(width: 80))
  }

  @Test func theTimelineHasNoTrailingBlanks() async {
    let operations = [operation("a"), operation("b")]
    tracer.trace(operations)
    // Finished without having executed: there is nothing to draw, and nothing to say.
    for operation in operations { operation.finish() }
    await run(operations, underWay: [])
    let lines = tracer.timeline().split(separator: "\n")
    #expect(lines.count == 3 && lines.allSatisfy { $0.last != " " }, "\(lines)")
  }

  @Test func namesAreCutInTheMiddleAndReckonedInColumns() {
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

  @Test func theSummaryAddsUp() async {
    let group = GroupOperation("group") {
      delay("b", 10) ==> delay("c", 10)
      delay("a", 20)
    }
    tracer.trace(group)
    await run([group], underWay: [2, 2])
    let summary = tracer.summary
    #expect(summary.operations == 3 && summary.elapsed == .milliseconds(20) && summary.busy == .milliseconds(40))
    #expect(summary.parallelism == 2 && summary.peak == 2 && summary.longestWait == nil)
    #expect(summary.criticalPath?.duration == .milliseconds(20))
    let sentences = "3 operations in 20 ms, 2.0 at once on average, 2 at most.\nCritical path by dependencies, 20 ms: "
    #expect(summary.description.hasPrefix(sentences) && !summary.description.contains("Longest wait"))
  }

  @Test(arguments: [false, true]) func theLongestWaitIsForATurn(inAGroup: Bool) async {
    let delays = ["first", "second", "third"].map { delay($0, 10) }
    let group = GroupOperation(inAGroup ? delays : [])
    group.maxConcurrentOperationCount = 1
    queue.maxConcurrentOperationCount = 1
    let operations: [AsyncOperation] = inAGroup ? [group] : delays
    tracer.trace(operations)
    clock.advance(by: .seconds(1))
    await run(operations, underWay: [1, 1, 1])
    #expect(tracer.records[0].enqueued == .seconds(1))
    // Not the second before the group or the queue began.
    #expect(tracer.summary.longestWait?.name == "third")
    #expect(tracer.summary.longestWait?.duration == .milliseconds(20))
  }

  // MARK: The graph

  @Test func theGraphHasTheDurations() async {
    await runImporter()
    let graph = tracer.graph
    #expect(graph.criticalPath?.names == ["Download", "Parse"] && graph.criticalPath?.duration == .milliseconds(30))
    #expect(graph.nodes.map(\.state) == [.failed, .finished, .finished, .failed, .cancelled] && graph.cycle == nil)
    let durations = [30, 20, 10, 0].map { Duration.milliseconds($0) }
    #expect(graph.nodes.map(\.duration) == durations + [nil])
  }
}
