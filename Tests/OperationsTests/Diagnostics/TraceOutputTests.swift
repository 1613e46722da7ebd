import Foundation
import Operations
import OperationsTestSupport
import Testing

#if canImport(FoundationXML)
import FoundationXML
#endif

/// The timeline, the summary and the graph of a trace, and the trace in the Trace Event Format.
@Suite(.timeLimit(.minutes(5)))
struct TraceOutputTests {
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

  // MARK: Timelines and pages

  @Test func timelinePictureAndGraph_showTheDurations() async throws {
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
    let longest = tracer.timeline(lines: 2).matches(of: /Import|Download|Parse|Check|Skipped/)
    #expect(longest.map(\.0) == ["Import", "Download"])
    let svg = tracer.svg(width: 600)
    let picture = try Picture(svg)
    #expect(picture.bars.map(\.kind) == ["finished", "finished", "failed", "cancelled"])
    let widths = picture.bars.map(\.width)
    #expect(abs(widths[0] - 2 * widths[1]) < 0.5 && widths[2] == 2 && picture.right <= 600)
    #expect(svg.matches(of: /class="group failed"/).count == 1)
    #expect(picture.text.contains("Import: failed, 30 ms") && picture.text.contains("Skipped: cancelled"))
    let times = picture.text.filter { $0.hasSuffix("s") && !$0.contains(":") }
    // The times of the scale, and on the bars.
    #expect(times == ["0 s", "10 ms", "20 ms", "30 ms", "✕ 30 ms", "20 ms", "10 ms", "✕ 0 s"])
    let graph = tracer.graph
    #expect(graph.criticalPath?.names == ["Download", "Parse"] && graph.criticalPath?.duration == .milliseconds(30))
    #expect(graph.nodes.map(\.state) == [.failed, .finished, .finished, .failed, .cancelled] && graph.cycle == nil)
    let durations: [Duration?] = [.milliseconds(30), .milliseconds(20), .milliseconds(10), .zero, nil]
    #expect(graph.nodes.map(\.duration) == durations)
  }

  @Test func picture_isWellFormed_whateverTheNames() async throws {
    _ = try Picture(tracer.svg())
    await run([operation("<a & \"b\">\u{0}\n")])
    let picture = try Picture(tracer.svg(width: 0))
    #expect(picture.text.contains { $0.hasPrefix("&lt;a &amp; \"b\"&gt;") } && picture.right <= 300)
  }

  @Test func page_hasTheFailuresOfMembersAndRefersToNoFile() async {
    await runImporter()
    let page = tracer.html()
    #expect(page.contains("<li data-id=\"3\">Import › Check: no</li>") && page.matches(of: #/<li /#).count == 1)
    #expect(page.contains(#/<title>Import, \d{4}-\d{2}-\d{2}</title>/#) && page.contains("<h1>Import</h1>"))
    #expect(!page.contains("Not finished") && !page.contains("Nothing is left"))
    // Colors and shapes tell how a group and its members ended.
    #expect(page.contains(#/<rect class="failed box"/#) && page.contains(">✕ Check</text>"))
    for label in ["executed", "✕ failed", "cancelled"] { #expect(page.contains("</svg> \(label)</span>")) }
    #expect(page.matches(of: /src=|href=|url\(|@import/).isEmpty)
    #expect(page.matches(of: /<rect class="finished" [^>]*height="26"/).count == 2)
  }

  /// A retry of functions that backs off, one that hangs, and an operation behind it.
  @Test func page_tellsAttemptsPausesAndWhatHangs() async throws {
    let retry = RetryOperation(attempts: 2, backoff: .constant(.milliseconds(20))) { [clock] attempt in
      try await clock.sleep(for: .milliseconds(10))
      if attempt == 1 { throw TestError("busy") }
    }
    let (hanging, last) = (HeldOperation().named("hanging"), operation("last"))
    retry.clock = clock
    retry.named("retry") ==> hanging ==> last
    tracer.trace([retry, hanging, last], in: queue)
    await clock.run(until: retry)
    await hanging.begun.opened()
    clock.advance(by: .milliseconds(60))
    #expect(tracer.timeline(width: 60).contains(#/retry +█+─+█+ +40 ms/#), "\(tracer.timeline(width: 60))")
    let page = tracer.html()
    let picture = try Picture(tracer.svg())
    #expect(picture.bars.map(\.kind) == ["retried", "finished", "executing", "pending"])
    #expect(page.matches(of: /<path class="pause"/).count == 1)
    #expect(page.contains(">waits for hanging</text>") && page.contains(">executing, 60 ms</text>"))
    // The cause is marked, and the report is the first section.
    #expect(
      page.contains(#/data-id="1"><title>[^<]*</title><path class="stuck"/#)
        && page.matches(of: /class="stuck"/).count == 1
    )
    let headings = page.matches(of: #/<h2>([^<]+)/#).map(\.output.1)
    #expect(headings == ["Not finished", "Timeline", "Graph"])
    await queue.drained(opening: [hanging.gate])
  }

  /// Members are inside the frames of their groups, with room on all sides, and beside each other.
  @Test func page_drawsMembersBesideEachOtherInTheirGroups() async throws {
    let images = GroupOperation((1...10).map { operation("image \($0)") }).named("images")
    let pages = GroupOperation((1...3).map { operation("page \($0)") } + [images]).named("pages")
    let index = operation("index")
    index ==> pages
    await run([index, pages])
    let number =
      #/<g class="node" data-id="(\d+)">.*?<rect class="[^"]+" x="(\d+)" y="(\d+)" width="(\d+)" height="(\d+)"/#
    let boxes = tracer.html().matches(of: number).reduce(into: [Int: (x: Range<Int>, y: Range<Int>)]()) {
      boxes,
      match in
      let numbers = [match.1, match.2, match.3, match.4, match.5].compactMap { Int($0) }
      boxes[numbers[0]] = (numbers[1]..<numbers[1] + numbers[3], numbers[2]..<numbers[2] + numbers[4])
    }
    let records = tracer.records
    #expect(boxes.count == records.count)
    for record in records {
      let box = try #require(boxes[record.id])
      if let group = record.group.flatMap({ boxes[$0] }) {
        #expect(group.x.lowerBound + 10 <= box.x.lowerBound && box.x.upperBound + 10 <= group.x.upperBound)
        #expect(group.y.lowerBound + 20 <= box.y.lowerBound && box.y.upperBound + 10 <= group.y.upperBound)
      }
      for other in records where other.group == record.group && other.id < record.id {
        let box = (try #require(boxes[other.id]), box)
        #expect(!box.0.x.overlaps(box.1.x) || !box.0.y.overlaps(box.1.y), "\(other.name), \(record.name)")
      }
    }
    let page = try #require(try boxes[tracer.record("page 1").id])
    #expect(try page.x.lowerBound == boxes[tracer.record("images").id]?.x.lowerBound, "no column for a level")
    #expect(try boxes[tracer.record("index").id].map { $0.x.upperBound < page.x.lowerBound } == true)
    // One arrow leads to the group.
    #expect(tracer.html().matches(of: /class="arrow"/).count == 1)
  }

  @Test func page_explainsWhatHasNotFinished() async {
    let (login, upload) = (operation("login"), operation("</script><b>"))
    login ==> upload
    tracer.trace([upload], in: queue)
    let page = tracer.html()
    #expect(page.contains("“&lt;/script&gt;&lt;b&gt;” waits for “login”, which was never added"))
    #expect(page.matches(of: /<\/script>/).count == 1)
    queue.addOperation(login)
    await queue.finished()
  }

  @Test func page_showsControlCharactersAsPictures() async {
    await run([ResultOperation<Int> { throw TestError("bell\u{7}") }.named("nul\u{0}esc\u{1B}")])
    let page = tracer.html()
    #expect(page.contains("nul␀esc␛: bell␇</li>"))
    #expect(page.contains(#"["operation","nul␀esc␛"]"#) && page.contains(#"["error","bell␇"]"#))
    #expect(!page.unicodeScalars.contains { $0.value < 0x20 && $0 != "\n" })
  }

  /// The bars and the text of a picture in SVG, which an XML parser can read.
  private struct Picture {
    let bars: [(kind: String, left: Double, width: Double)]
    let text: [String]

    var right: Double { bars.map { $0.left + $0.width }.max() ?? 0 }

    init(_ svg: String) throws {
      try #require(XMLParser(data: Data(svg.utf8)).parse())
      bars = svg.matches(of: /<rect class="(\w+)" x="([0-9.]+)" y="\d+" width="([0-9.]+)"/)
        .map { (String($0.1), Double($0.2) ?? -1, Double($0.3) ?? -1) }
      text = svg.matches(of: />([^<>]+)<\/t/).map { String($0.1) }
    }
  }

  @Test func timelineOfLongNamesInNestedGroups_keepsItsWidthWithoutTrailingSpaces() async {
    let group = (0...12).reduce(operation("a member with quite a long name")) { inner, number in
      GroupOperation([inner]).named("a group with quite a long name, number \(number)")
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
    #expect(tracer.timeline(lines: 10).hasSuffix("\n… and 6 more. timeline(lines: 16) draws all.\n"))
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

  @Test func summary_ofTheLongestTimes_isLimited() async {
    let operations = (0..<3).map { _ in HeldOperation() }
    tracer.trace(operations, in: queue)
    for operation in operations { await operation.begun.opened() }
    clock.advance(by: .longest)
    #expect(tracer.summary.busy == .longest && tracer.records.allSatisfy { $0.state == .executing })
    await queue.drained(opening: operations.map(\.gate))
  }

  @Test(arguments: [false, true]) func longestWait_isForASlot(inAGroup: Bool) async {
    // A delay would use no slot of a group.
    let sleeps = ["first", "second", "third"].map { name in
      TaskOperation { [clock] in try await clock.sleep(for: .milliseconds(10)) }.named(name)
    }
    let group = GroupOperation(inAGroup ? sleeps : [], maxConcurrentOperationCount: 1)
    queue.maxConcurrentOperationCount = 1
    let operations: [AsyncOperation] = inAGroup ? [group] : sleeps
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

  // MARK: The Trace Event Format

  /// Runs a group of two downloads in a chain, an operation that waits for it, an independent one, and a cancelled one.
  private func runDownloads() async {
    let cancelled = operation("cancelled")
    cancelled.cancel()
    let group = GroupOperation("importer") {
      GroupOperation("downloads") { clock.delay("first", 10) ==> clock.delay("second", 10) } ==> operation("last")
      clock.delay("beside", 15)
      cancelled
    }
    await run([group], executing: [2, 2])
  }

  @Test func everyEvent_hasTheFieldsOfItsPhase_andARowWithItsOwnName() async throws {
    await runDownloads()
    let events = try tracer.events()
    let names = events.filter { $0.name == "thread_name" }
    let rows = Set(names.map(\.tid))
    #expect(rows.count == names.count && Set(names.compactMap { $0.args?.name }).count == names.count)
    // Perfetto puts the row with the number of the process before all others.
    #expect(!rows.contains(1))
    for event in events {
      #expect(event.name == "process_name" || rows.contains(event.tid), "\(event)")
      #expect(event.ts != nil || event.ph == "M", "\(event)")
      switch event.ph {
      case "X": #expect(event.dur ?? -1 > 0 && event.cat != nil, "\(event)")
      case "i": #expect(event.s == "t", "\(event)")
      case "s": #expect(event.id != nil, "\(event)")
      case "f": #expect(event.id != nil && event.bp == "e", "\(event)")
      case "M":
        let isName = ["process_name", "thread_name"].contains(event.name)
        #expect(isName ? event.args?.name != nil : event.args?.sortIndex != nil, "\(event)")
      default: Issue.record("an event of an unknown phase: \(event)")
      }
    }
  }

  @Test func executions_areInTheirGroupsInMicroseconds_andACancellationIsAMark() async throws {
    await runDownloads()
    let groups = try tracer.events().filter { $0.cat == "group" }
    #expect(groups.map(\.name) == ["importer", "downloads"] && Set(groups.map(\.tid)).count == 1)
    let second = try #require(try tracer.events("X").first { $0.name == "second" })
    #expect(second.ts == 10_000 && second.dur == 10_000)
    #expect(second.args?.group == "downloads" && second.args?.state == "finished")
    let mark = try #require(try tracer.events("i").first)
    #expect(mark.name == "cancelled cancelled")
    let row = try tracer.events("M").first { $0.name == "thread_name" && $0.tid == mark.tid }
    #expect(row?.args?.name == "never executed")
    #expect(try !tracer.events("X").contains { $0.name == "cancelled" })
  }

  // MARK: Arrows

  @Test func dependencies_areArrowsBetweenExecutions() async throws {
    await runDownloads()
    let executions = try tracer.events("X")
    func name(at arrow: TraceEvent) -> String? {
      executions.last { $0.tid == arrow.tid && $0.begin <= arrow.begin && arrow.begin < $0.end }?.name
    }
    let arrows = Dictionary(grouping: try tracer.events("s", "f"), by: \.id)
    #expect(arrows.count == 2)
    // The start of an arrow is written before its end.
    for ends in arrows.values { #expect(ends.map(\.ph) == ["s", "f"] && ends[0].begin <= ends[1].begin) }
    #expect(Set(arrows.values.map { $0.map { name(at: $0) } }) == [["first", "second"], ["downloads", "last"]])
  }

  @Test func arrows_neverLeadBackInTime() async throws {
    let (first, second, queue) = (HeldOperation(), AsyncOperation(), OperationQueue())
    first ==> second
    tracer.trace([first, second])
    second.removeDependency(first)
    await queue.begin(first)
    clock.advance(by: .seconds(5))
    await queue.run(settling: [second])
    clock.advance(by: .seconds(5))
    await queue.drained(opening: [first.gate])
    #expect(try tracer.events("s", "f").map(\.ts) == [5_000_000, 5_000_000])
  }

  // MARK: Oddities

  /// Perfetto 52 reads the quotation mark behind a backslash as part of the text, and then rejects the file.
  @Test(arguments: ["C:\\", "\\\\"]) func aNameThatEndsInABackslash_isOpenedByPerfetto(name: String) async {
    await run([operation(name)])
    #expect(!String(decoding: tracer.chromeTrace(), as: UTF8.self).contains("\\\\\""))
  }
}
