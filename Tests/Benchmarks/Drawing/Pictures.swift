import Foundation
import Operations
import OperationsTestSupport

/// The pictures of the documentation that show what the package does, drawn from runs.
enum Pictures {
  static func draw(into folder: URL) async throws {
    try await groupGraph(into: folder.appending(path: "group-graph.svg"))
    try await crawl(into: folder.appending(path: "crawl-timeline.svg"))
    try chainCost(into: folder.appending(path: "chain-cost.svg"))
  }

  // MARK: The graph of a group

  /// Draws a running group with Graphviz.
  private static func groupGraph(into file: URL) async throws {
    let begun = Journal<Void>()
    func held(_ name: String) -> AsyncOperation { AsyncBlockOperation { _ in begun.write(()) }.named(name) }
    let (parse, news, home) = (held("parse"), held("news"), AsyncOperation().named("home"))
    let group = GroupOperation("Import") {
      ResultOperation {}.named("download") ==> parse ==> AsyncOperation().named("store")
        ==> AsyncOperation().named("cleanUp")
      home
      news
    }
    let tracer = OperationTracer()
    tracer.trace(group)
    OperationQueue().addOperation(group)
    await home.finished()
    await begun.reaches(2)
    let dot = tracer.graph.withDurations { _ in nil }.dot()
    for operation in [parse, news] { operation.finish() }
    await group.finished()

    let source = FileManager.default.temporaryDirectory.appending(path: "\(UUID().uuidString).dot")
    try dot.write(to: source, atomically: true, encoding: .utf8)
    defer { try? FileManager.default.removeItem(at: source) }
    try drawGraph(source, into: file)
    var svg = try String(contentsOf: file, encoding: .utf8)
    svg.replace(#/font-family="[^"]*"/#, with: "font-family=\"\(Picture.fonts)\"")
    svg.replace(
      "<g id=\"graph0\"",
      with: "<style>\(graphStyle)</style>\n<rect class='page' width='100%' height='100%' rx='8'/>\n<g id=\"graph0\"",
      maxReplacements: 1
    )
    try svg.write(to: file, atomically: true, encoding: .utf8)
  }

  /// The box of a group is paler than a member in the same state.
  private static let graphStyle = """
    .cluster path{fill-opacity:.4}\(Picture.background)
    @media (prefers-color-scheme:dark){
    text{fill:#f5f5f7}.edge path{stroke:#a1a1a6}.edge polygon{stroke:#a1a1a6;fill:#a1a1a6}
    [fill="#f3f4f6"]{fill:#2c2c2e}[stroke="#6b7280"]{stroke:#98989d}[fill="#dbeafe"]{fill:#1e3a5f}
    [stroke="#2563eb"]{stroke:#60a5fa}[fill="#dcfce7"]{fill:#14432a}[stroke="#16a34a"]{stroke:#4ade80}
    }
    """

  private static func drawGraph(_ source: URL, into file: URL) throws {
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = ["dot", "-Tsvg", "-Gbgcolor=transparent", "-Ecolor=#6e6e73", source.path, "-o", file.path]
    try process.run()
    process.waitUntilExit()
    if process.terminationStatus != 0 { throw CocoaError(.fileWriteUnknown) }
  }

  // MARK: The timeline of a crawl

  private struct Busy: Error {}

  /// Draws a run of the limits of the article “Networking”, with shorter times.
  private static func crawl(into file: URL) async throws {
    let hosts = [("slow", 3, 400), ("news", 5, 110), ("blog", 4, 150)]
    let pages = hosts.flatMap { host, count, time in
      (1...count).map { number in
        RetryOperation(attempts: 4, backoff: .constant(.milliseconds(300))) { attempt in
          TaskOperation {
            try await Task.sleep(for: .milliseconds(time))
            if host == "blog", number == 2, attempt == 1 { throw Busy() }
          }.named("attempt \(attempt)")
        }
        .named("\(host)/\(number)")
        .limited("host \(host)", to: 2)
        .throttled("host \(host)", to: 4, per: .seconds(1))
      }
    }
    let crawl = GroupOperation(pages, maxConcurrentOperationCount: 6).named("Downloads")
    let tracer = OperationTracer()
    tracer.trace(crawl)
    try await OperationQueue().run(crawl)
    try tracer.svg(width: 480).write(to: file, atomically: true, encoding: .utf8)
  }

  // MARK: The cost of a chain

  private static func chainCost(into file: URL) throws {
    let queue = [125, 500, 2000, 8000].map { (count: $0, nanoseconds: lowest(GroupBenchmarks.stockChain($0))) }
    let group = [125, 500, 2000, 8000, 32_000].map { (count: $0, nanoseconds: lowest(.chain($0))) }
    let (left, right, top, bottom) = (76.0, Picture.width - 16, 44.0, 330.0)
    /// The place of a point: both axes are logarithmic, from 100 operations and from a microsecond.
    func place(_ count: Double, _ nanoseconds: Double) -> (x: Double, y: Double) {
      (left + log10(count / 100) / 3 * (right - left), bottom - log10(nanoseconds / 1000) / 4 * (bottom - top))
    }
    var picture = Picture(height: bottom + 54)
    picture.text("Time per operation", 8, 22)
    for (power, label) in ["1 µs", "10 µs", "100 µs", "1 ms", "10 ms"].enumerated() {
      let y = place(100, 1000 * pow(10, Double(power))).y
      picture.line([(left, y), (right, y)], hasDots: false, "grid")
      picture.text(label, left - 10, y + 5, "muted end")
    }
    for (power, label) in ["100", "1,000", "10,000", "100,000"].enumerated() {
      picture.text(
        label,
        place(100 * pow(10, Double(power)), 1).x,
        bottom + 22,
        power == 3 ? "muted end" : "muted middle"
      )
    }
    picture.text("Operations in the chain", right, bottom + 44, "end")
    for (name, samples, ink) in [("OperationQueue", queue, "second"), ("GroupOperation", group, "first")] {
      let points = samples.map { place(Double($0.count), $0.nanoseconds) }
      picture.line(points, hasDots: true, ink)
      guard let end = points.last, let time = samples.last?.nanoseconds else { continue }
      let reading = time < 1e6 ? String(format: "%.1f µs", time / 1e3) : String(format: "%.1f ms", time / 1e6)
      picture.text("\(name): \(reading)", end.x + 16, end.y - 14, "\(ink) end")
    }
    try picture.write(to: file)
  }

  /// The lowest time of at least three seconds of rounds, because other programs only add to a time.
  private static func lowest(_ workload: Workload) -> Double {
    var lowest = workload.measure(0)
    let end = ContinuousClock.now + .seconds(3)
    repeat { lowest = min(lowest, workload.measure(0)) } while ContinuousClock.now < end
    return lowest
  }
}
