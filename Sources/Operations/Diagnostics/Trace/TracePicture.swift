import Foundation

extension OperationTracer {
  /// Returns a drawing of the recorded operations as a picture in SVG, for a file or a page.
  ///
  /// Each operation has a row, and members are below their group. The colors, which a legend explains, show how an
  /// operation spent its time: it waited for its keys (yellow) or for a slot (gray), it executed (blue), and it failed
  /// (red) or was cancelled (dashed). A group is a bracket above its members, and a retry is one above attempts that are
  /// operations. The picture has colors and a background for light and dark pages, and no script.
  ///
  /// - Parameter width: The width in points. A value below 300 counts as 300, and a value above 10,000 as 10,000.
  /// - Complexity: O(n log n) for n operations.
  public func svg(width: Int = 1000) -> String {
    TracePicture(records, now, width: min(max(width, 300), 10_000)).text
  }
}

struct TracePicture {
  private static let (rowHeight, barHeight, margin) = (22, 12, 12)
  private static let style = """
    <style>
    .page { fill: #ffffff }
    text { font: 12px ui-sans-serif, system-ui, sans-serif; fill: #1f2328 }
    .time { fill: #59636e }
    .line { stroke: #d1d9e0 } .group { stroke: #59636e; fill: none }
    .key { fill: #e3b341 } .slot { fill: #c8d1da }
    .finished, .executing { fill: #2f81f7 } .failed { fill: #cf222e }
    .cancelled, .pending { fill: none; stroke: #59636e; stroke-dasharray: 3 2 }
    @media (prefers-color-scheme: dark) {
      .page { fill: #1c1c1e }
      text { fill: #e6edf3 } .time { fill: #9198a1 }
      .line { stroke: #3d444d } .group { stroke: #9198a1 }
      .key { fill: #bb8009 } .slot { fill: #57606a }
      .failed { fill: #f85149 } .cancelled, .pending { stroke: #9198a1 }
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

  init(_ records: [OperationTracer.Record], _ now: Duration, width: Int) {
    (self.records, self.now, self.width) = (records, now, width)
    rows = GraphDrawing.outline(of: records.map(\.group))
    start = records.compactMap { $0.requestedKeys ?? $0.started ?? $0.cancelled }.min() ?? .zero
    end = records.compactMap { $0.started == nil ? $0.cancelled : $0.finished ?? now }.max() ?? start
    let longest = rows.map { min(records[$0.id].name.count, 40) + 2 * $0.depth }.max() ?? 0
    nameWidth = min(Double(longest) * 6.6 + 12, Double(width) / 2)
  }

  var text: String {
    let bottom = (rows.count + 1) * Self.rowHeight + Self.margin
    let height = bottom + Self.rowHeight + Self.margin
    let body = rows.enumerated().map { row, line in draw(records[line.id], depth: line.depth, row: row) }
    return """
      <svg xmlns="http://www.w3.org/2000/svg" width="\(width)" height="\(height)" viewBox="0 0 \(width) \(height)">
      \(Self.style)
      <rect class="page" width="100%" height="100%" rx="8"/>
      \((ticks.map { mark($0, bottom: bottom) } + body + legend(bottom + 10)).joined(separator: "\n"))
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
    ("key", "key wait"), ("slot", "slot wait"), ("finished", "runs"), ("failed", "failed"), ("cancelled", "cancelled"),
  ]

  private func legend(_ y: Int) -> [String] {
    var x = Double(Self.margin)
    return Self.legend.map { kind, label in
      defer { x += 18 + Double(label.count) * 5.6 }
      return """
        <path class="\(kind)" d="M\(x) \(y)h10v10h-10z"/>
        <text class="time" x="\(x + 14)" y="\(y + 10)">\(label)</text>
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
    let title = "<title>\("\(name): \(record.state.rawValue)\(time)".inMarkup)</title>"
    return "<g data-id=\"\(record.id)\">\(title)\(label)\(bars(record, y))</g>"
  }

  private func bars(_ record: OperationTracer.Record, _ y: Int) -> String {
    guard let started = record.started else {
      guard let cancelled = record.cancelled else { return "" }
      return bar("cancelled", cancelled, cancelled, y)
    }
    let finished = record.finished ?? now
    let (requested, ready) = record.waits(until: started, in: records)
    let wait = requested < ready ? bar("key", requested, ready, y) : ""
    if record.isGroup {
      let (from, to) = (x(of: started), max(x(of: finished), x(of: started) + 1))
      let lines = "M\(from) \(y)v\(Self.barHeight)M\(from) \(y + 6)H\(to)M\(to) \(y)v12"
      let waits = record.keyWaitsAfterPauses(until: now).map { bar("key", $0.lowerBound, $0.upperBound, y) }
      return wait + #"<path class="group" d="\#(lines)"/>"# + waits.joined()
    }
    return wait + (ready < started ? bar("slot", ready, started, y) : "")
      + bar(record.state.rawValue, started, finished, y)
  }

  private func bar(_ kind: String, _ from: Duration, _ to: Duration, _ y: Int) -> String {
    let (left, right) = (x(of: from), x(of: to))
    let width = max(right - left, 2)
    return #"<rect class="\#(kind)" x="\#(left)" y="\#(y)" width="\#(width)" height="\#(Self.barHeight)" rx="2"/>"#
  }

  private func x(of time: Duration) -> Double {
    let (left, right) = (Double(Self.margin) + nameWidth, Double(width - Self.margin))
    let part = end > start ? min(max((time - start) / (end - start), 0), 1) : 0
    return ((left + (right - left) * part) * 10).rounded() / 10
  }
}

extension String {
  var inMarkup: String {
    replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
  }
}
