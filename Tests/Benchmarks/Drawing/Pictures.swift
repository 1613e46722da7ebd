#if os(Linux)
import Foundation
import LocalServer
import Operations
import OperationsTestSupport

/// The pictures of the documentation that show what the package does, drawn from runs.
enum Pictures {
  static func draw(into folder: URL) async throws {
    try await groupGraph(into: folder)
    try timeline(into: folder)
    try chainCost(into: folder)
  }

  /// Runs a program that is in the search path or beside this one.
  private static func run(_ program: String, _ arguments: [String]) throws {
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = [program] + arguments
    let products = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent().path
    let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
    process.environment = ["PATH": "\(products):\(path)", "no_proxy": "*"]
    process.standardOutput = FileHandle.nullDevice
    try process.run()
    process.waitUntilExit()
    if process.terminationStatus != 0 { throw Failure(program: program, status: process.terminationStatus) }
  }

  private struct Failure: Error {
    let program: String
    let status: Int32
  }

  // MARK: The graph of a group

  /// The colors of the states on a dark page.
  private static let darkColors = [
    "#f3f4f6": "#2c2c2e", "#6b7280": "#98989d", "#dbeafe": "#1e3a5f", "#2563eb": "#60a5fa", "#dcfce7": "#14432a",
    "#16a34a": "#4ade80",
  ]

  /// Draws a running group with Graphviz.
  private static func groupGraph(into folder: URL) async throws {
    let (parse, news) = (Held().named("parse"), Held().named("news"))
    let group = GroupOperation("Import") {
      ResultOperation {}.named("download") ==> parse ==> AsyncOperation().named("store")
        ==> AsyncOperation().named("cleanUp")
      AsyncOperation().named("home")
      news
    }
    let home = group.operations(named: "home").compactMap { $0 as? AsyncOperation }
    let tracer = OperationTracer()
    tracer.trace(group)
    OperationQueue().addOperation(group)
    for operation in home { await operation.finished() }
    await parse.begun.opened()
    await news.begun.opened()
    let dot = tracer.graph.withDurations { _ in nil }.dot()
    for operation in [parse, news] { operation.finish() }
    await group.finished()

    let source = FileManager.default.temporaryDirectory.appending(path: "\(UUID().uuidString).dot")
    try dot.write(to: source, atomically: true, encoding: .utf8)
    defer { try? FileManager.default.removeItem(at: source) }
    for scheme in Picture.Scheme.allCases {
      let file = folder.appending(path: "group-graph\(scheme.rawValue).svg")
      let colors = ["-Gfontcolor=\(scheme.text)", "-Nfontcolor=\(scheme.text)", "-Ecolor=\(scheme.muted)"]
      try run("dot", ["-Tsvg", "-Gbgcolor=transparent"] + colors + [source.path, "-o", file.path])
      var svg = try String(contentsOf: file, encoding: .utf8)
      if scheme == .dark { for (light, dark) in darkColors { svg = svg.replacing(light, with: dark) } }
      svg.replace(#/font-family="[^"]*"/#, with: "font-family=\"\(Picture.fonts)\"")
      try svg.write(to: file, atomically: true, encoding: .utf8)
    }
  }

  private final class Held: AsyncOperation, @unchecked Sendable {
    let begun = Gate()

    override func execute() { begun.open() }
  }

  // MARK: The timeline of a crawl

  private struct Trace: Decodable {
    struct Event: Decodable {
      struct Arguments: Decodable { let group: String? }

      let name: String
      let cat: String?
      let ts, dur: Double?
      let args: Arguments?
    }

    let traceEvents: [Event]
  }

  /// How many milliseconds each page of a site takes to load. The first page links to the others.
  private static let loadTimes = [
    "/": 60, "/about": 210, "/blog": 150, "/careers": 260, "/contact": 180, "/docs": 120, "/events": 240, "/help": 160,
    "/login": 140, "/news": 220, "/press": 170, "/search": 250, "/status": 130, "/terms": 190,
  ]

  /// Draws when the pages of a site were waiting for their host and loaded, from a trace that LinkCheck writes.
  private static func timeline(into folder: URL) throws {
    let site = try LocalServer { path, _ in
      guard let time = loadTimes[path] else { return .status(404) }
      Thread.sleep(forTimeInterval: Double(time) / 1000)
      return .page(loadTimes.keys.sorted().map { "<a href='\($0)'></a>" }.joined())
    }
    defer { site.stop() }
    let file = FileManager.default.temporaryDirectory.appending(path: "\(UUID().uuidString).json")
    defer { try? FileManager.default.removeItem(at: file) }
    try run("LinkCheck", ["--limit", "4", "--rate", "8", "--trace", file.path, site.address])
    let events = try JSONDecoder().decode(Trace.self, from: Data(contentsOf: file)).traceEvents
    var added: [String: Double] = [:]
    for event in events where event.cat == "group" { added[event.name] = event.ts }
    let loads = events.compactMap { event -> (name: String, added: Double, start: Double, end: Double)? in
      guard event.cat == "operation", let page = event.args?.group, let url = URL(string: page),
        let added = added[page],
        let start = event.ts, let duration = event.dur
      else { return nil }
      return (url.path().isEmpty ? "/" : url.path(), added, start, start + duration)
    }.sorted { $0.start < $1.start }
    guard let first = loads.first?.start, let last = loads.map(\.end).max() else { return }

    let (left, right, top, row) = (84.0, Picture.width - 12, 48.0, 23.0)
    let bottom = top + Double(loads.count) * row
    func x(_ time: Double) -> Double { left + max(time - first, 0) / (last - first) * (right - left) }
    var picture = Picture(height: bottom + 28)
    for (place, text, ink) in [(left, "waits for its host", "pale"), (left + 200, "loads", "first")] {
      picture.bar(from: place, to: place + 16, 12, height: 14, ink)
      picture.text(text, place + 24, 25)
    }
    for half in 0...Int((last - first) / 500_000) {
      let time = x(first + Double(half) * 500_000)
      picture.line([(time, top - 6), (time, bottom + 4)], hasDots: false, "grid")
      picture.text("\(Double(half) / 2) s", time, bottom + 22, "muted middle")
    }
    for (index, load) in loads.enumerated() {
      let y = top + Double(index) * row
      picture.text(load.name, left - 10, y + 15, "end")
      picture.bar(from: x(load.added), to: x(load.start), y + 3, height: 15, "pale")
      picture.bar(from: x(load.start), to: x(load.end), y + 3, height: 15, "first")
    }
    try picture.write("linkcheck-timeline", to: folder)
  }

  // MARK: The cost of a chain

  private static func chainCost(into folder: URL) throws {
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
    try picture.write("chain-cost", to: folder)
  }

  /// The lowest time of at least three seconds of rounds, because other programs only add to a time.
  private static func lowest(_ workload: Workload) -> Double {
    var lowest = workload.measure()
    let end = ContinuousClock.now + .seconds(3)
    repeat { lowest = min(lowest, workload.measure()) } while ContinuousClock.now < end
    return lowest
  }
}
#endif
