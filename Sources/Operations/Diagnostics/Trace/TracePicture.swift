import Foundation

extension OperationTracer {
  /// Returns a drawing of the recorded operations as a picture in SVG, for a file or a page.
  ///
  /// Each operation has a row, and members are below their group. The colors, which a legend explains, show how an
  /// operation spent its time: it waited for its keys (yellow) or for a slot (gray), it executed (blue), and it failed
  /// (red, with ✕) or was cancelled (dashed). A retry shows its failed attempts, and a line where it backed off. A group
  /// is a bracket above its members. The picture has colors and a background for light and dark pages, and no script.
  ///
  /// - Parameter width: The width in points. A value below 300 counts as 300, and a value above 10,000 as 10,000.
  /// - Complexity: O(n log n) for n operations.
  public func svg(width: Int = 1000) -> String {
    TracePicture(records, now, width: min(max(width, 300), 10_000)).text()
  }
}

struct TracePicture {
  private static let (rowHeight, barHeight, margin) = (22, 12, 12)
  private static let style = """
    <style>
    .page { fill: #ffffff }
    text { font: 12px ui-sans-serif, system-ui, sans-serif; fill: #1f2328 }
    .time { font-size: 11px; fill: #59636e }
    .line { stroke: #d1d9e0 } .group, .pause { stroke: #59636e; fill: none } .group { stroke-width: 1.5 }
    .key { fill: #e3b341 } .slot { fill: #c8d1da }
    .finished { fill: #2f81f7 } .executing { fill: #2f81f7; fill-opacity: .3; stroke: #2f81f7 }
    .failed { fill: #cf222e } .retried { fill: #cf222e; fill-opacity: .4 }
    .cancelled, .pending { fill: none; stroke: #59636e; stroke-dasharray: 3 2 }
    .group.finished, .group.executing { stroke: #2f81f7 } .group.failed { stroke: #cf222e }
    .group.finished, .group.executing, .group.failed { fill: none }
    .stuck { fill: #cf222e; fill-opacity: .12 }
    @media (prefers-color-scheme: dark) {
      .page { fill: #1c1c1e }
      text { fill: #e6edf3 } .time { fill: #9198a1 }
      .line { stroke: #3d444d } .group, .pause { stroke: #9198a1 }
      .key { fill: #bb8009 } .slot { fill: #57606a }
      .failed, .retried, .stuck { fill: #f85149 } .group.failed { stroke: #f85149 }
      .cancelled, .pending { stroke: #9198a1 }
    }
    </style>
    """

  private let records: [OperationTracer.Record]
  private let now: Duration
  private let width: Int
  private let start: Duration
  private let end: Duration
  private let rows: [(id: Int, depth: Int)]
  private let nameWidth: Double
  /// The operations to mark, because others wait for them.
  private let stuck: Set<Int>

  init(_ records: [OperationTracer.Record], _ now: Duration, width: Int, stuck: Set<Int> = []) {
    (self.records, self.now, self.width, self.stuck) = (records, now, width, stuck)
    rows = GraphDrawing.outline(of: records.map(\.group))
    start = records.compactMap { $0.requestedKeys ?? $0.started ?? $0.cancelled }.min() ?? .zero
    let ends = records.compactMap { $0.started == nil ? $0.cancelled : $0.finished ?? now }
    end = max(records.contains { $0.state == .pending } ? now : start, ends.max() ?? start)
    let longest = rows.map { min(records[$0.id].name.count, 40) + 2 * $0.depth }.max() ?? 0
    nameWidth = min(Double(longest) * 6.6 + 12, Double(width) / 2)
  }

  /// A page has the legend above the picture.
  func text(hasLegend: Bool = true) -> String {
    let bottom = (rows.count + 1) * Self.rowHeight + Self.margin
    let height = bottom + (hasLegend ? Self.rowHeight : 0) + Self.margin
    let body = rows.enumerated().map { row, line in draw(records[line.id], depth: line.depth, row: row) }
    let legend = hasLegend ? legend(bottom + 10, of: body.joined()) : []
    return """
      <svg xmlns="http://www.w3.org/2000/svg" width="\(width)" height="\(height)" viewBox="0 0 \(width) \(height)">
      \(Self.style)
      <rect class="page" width="100%" height="100%" rx="8"/>
      \((ticks.map { mark($0, bottom: bottom) } + body + legend).joined(separator: "\n"))
      </svg>

      """
  }

  /// Zero and the multiples of a round time, of which there are at most five.
  private var ticks: [Duration] {
    let (whole, powers) = (end - start, (0..<20).map { pow(10, Double($0)) })
    let steps = powers.flatMap { [$0, 2 * $0, 5 * $0] }.map { Duration.microseconds(1) * $0 }
    guard whole > .zero, let step = steps.first(where: { whole / $0 < 5 }) else { return [.zero] }
    return (0...Int(whole / step)).map { step * $0 }
  }

  private func mark(_ time: Duration, bottom: Int) -> String {
    let (x, y) = (x(of: start + time), Self.margin + Self.rowHeight / 2)
    let anchor = time == .zero ? "start" : x > Double(width) - 40 ? "end" : "middle"
    let label = time == .zero ? "0 s" : time.reading
    return """
      <line class="line" x1="\(x)" y1="\(y + 6)" x2="\(x)" y2="\(bottom)"/>
      <text class="time" x="\(x)" y="\(y)" text-anchor="\(anchor)">\(label)</text>
      """
  }

  private static let legend = [
    ("key", "waited for keys"), ("slot", "waited for a slot"), ("pending", "waiting"), ("finished", "executed"),
    ("executing", "executing"), ("retried", "failed attempt"), ("failed", "✕ failed"), ("cancelled", "cancelled"),
  ]

  /// Returns the kinds of bars that a picture has, and what they mean.
  static func legend(of picture: String) -> [(kind: String, label: String)] {
    legend.filter { picture.contains("<rect class=\"\($0.0)\"") }
  }

  private func legend(_ y: Int, of body: String) -> [String] {
    var x = Double(Self.margin)
    return Self.legend(of: body).map { kind, label in
      defer { x += 28 + Double(label.count) * 6 }
      return """
        <path class="\(kind)" d="M\(x) \(y)h10v10h-10z"/>
        <text class="time" x="\(x + 14)" y="\(y + 9)">\(label)</text>
        """
    }
  }

  private func draw(_ record: OperationTracer.Record, depth: Int, row: Int) -> String {
    let y = Self.margin + (row + 1) * Self.rowHeight
    let name = record.name.inOneLine
    let time = record.duration.map { ", " + $0.reading } ?? ""
    let label = """
      <text x="\(Double(Self.margin) + 13 * Double(min(depth, 8)))" y="\(y + 11)">\(name.shortened(to: 40).inMarkup)</text>
      """
    let mark = stuck.contains(record.id) ? #"<path class="stuck" d="M0 \#(y - 5)h\#(width)v22h-\#(width)z"/>"# : ""
    let title = "<title>\("\(name): \(record.state.rawValue)\(time)".inMarkup)</title>"
    return "<g class=\"row\" data-id=\"\(record.id)\">\(title)\(mark)\(label)\(bars(record, y))</g>"
  }

  private func bars(_ record: OperationTracer.Record, _ y: Int) -> String {
    guard let started = record.started else {
      if let time = record.cancelled { return bar("cancelled", time, time, y) + remark("cancelled", time, time, y) }
      if record.state != .pending { return "" }
      let from = max(record.requestedKeys ?? record.enqueued ?? record.created, start)
      return bar("pending", from, now, y) + remark(record.obstacle(in: records), from, now, y)
    }
    let finished = record.finished ?? now
    let (requested, ready) = record.waits(until: started, in: records)
    let wait = requested < ready ? bar("key", requested, ready, y) : ""
    let (state, pauses) = (record.state.rawValue, record.pauses(until: now))
    let keyWaits = record.keyWaitsAfterPauses(until: now).map { bar("key", $0.lowerBound, $0.upperBound, y) }.joined()
    let time = (record.finished == nil ? "executing, " : "") + (finished - started).reading
    let remark = remark((state == "failed" ? "✕ " : "") + time, requested, finished, y)
    if record.isGroup {
      let (from, to) = (x(of: started), max(x(of: finished), x(of: started) + 1))
      let lines = "M\(from) \(y)v\(Self.barHeight)M\(from) \(y + 6)H\(to)M\(to) \(y)v12"
      return wait + #"<path class="group \#(state)" d="\#(lines)"/>"# + keyWaits + remark
    }
    let attempts = zip([started] + pauses.map(\.upperBound), pauses.map(\.lowerBound)).map { bar("retried", $0, $1, y) }
    let lines = pauses.map {
      #"<path class="pause" d="M\#(x(of: $0.lowerBound)) \#(y + 6)H\#(x(of: $0.upperBound))"/>"#
    }
    return wait + (ready < started ? bar("slot", ready, started, y) : "") + attempts.joined() + lines.joined()
      + keyWaits
      + bar(state, pauses.last?.upperBound ?? started, finished, y) + remark
  }

  /// Writes a text after the bars or, where there is no room, at the beginning of the empty bar of a waiting operation.
  private func remark(_ text: String, _ from: Duration, _ to: Duration, _ y: Int) -> String {
    let isShort = x(of: to) + Double(text.columns) * 6 <= Double(width - Self.margin)
    let x = isShort ? x(of: to) + 4 : x(of: from) + 6
    return #"<text class="time" x="\#(x)" y="\#(y + 10)">\#(text.inMarkup)</text>"#
  }

  private func bar(_ kind: String, _ from: Duration, _ to: Duration, _ y: Int) -> String {
    let (left, right) = (x(of: from), x(of: to))
    let width = max(right - left, 2)
    return #"<rect class="\#(kind)" x="\#(left)" y="\#(y)" width="\#(width)" height="\#(Self.barHeight)" rx="2"/>"#
  }

  private func x(of time: Duration) -> Double {
    // The texts after the bars need room.
    let (left, right) = (Double(Self.margin) + nameWidth, Double(width - Self.margin - min(110, width / 6)))
    let part = end > start ? min(max((time - start) / (end - start), 0), 1) : 0
    return ((left + (right - left) * part) * 10).rounded() / 10
  }
}

extension OperationTracer.Record {
  /// What an operation that has not started waits for.
  func obstacle(in records: [Self]) -> String {
    let unfinished = dependencies.filter { records[$0].finished == nil }
    if !unfinished.isEmpty { return "waits for " + unfinished.listed { records[$0].name.brief } }
    if requestedKeys != nil, ready == nil { return "waits for its keys" }
    return ready == nil ? "waits" : "waits for a slot"
  }
}

extension String {
  var inMarkup: String {
    replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
  }
}
