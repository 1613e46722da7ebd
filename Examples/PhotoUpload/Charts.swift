/// A chart of characters.
struct TerminalChart {
  private static let labelWidth = 10
  private static let rows = 6
  /// Bars in eighths of a row.
  private static let blocks = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"]

  let lines: [String]

  init(of recording: Recording, width: Int) {
    let count = max(20, width - TerminalChart.labelWidth)
    let columns = Timeline(of: recording.frames, over: recording.length, columns: count).columns
    let bars = (0..<TerminalChart.rows).reversed().map { row in
      TerminalChart.label(ofRow: row) + columns.map { TerminalChart.block(of: $0, inRow: row) }.joined()
    }
    let end = recording.length.seconds
    let axis = "0".padded(to: count - end.count) + end
    let ground = String(repeating: "─", count: count)
    lines = bars + ["".padded(to: 9) + "└" + ground, "".padded(to: TerminalChart.labelWidth) + axis]
  }

  /// A frame's time is two rows high. A bar that reaches the third row is a missed frame.
  private static func label(ofRow row: Int) -> String {
    let height = Timeline.ceiling * (row + 1) / rows
    return row % 2 == 0 ? "".padded(to: 9) + "│" : height.milliseconds.padded(to: 8) + " ┤"
  }

  private static func block(of cost: Duration, inRow row: Int) -> String {
    if cost > Timeline.ceiling, row == rows - 1 { return "▲" }
    let height = cost / Timeline.ceiling * Double(rows) - Double(row)
    // Rounded up, so that every missed frame is visible in the third row.
    return blocks[Int((min(max(height, 0), 1) * 8).rounded(.up))]
  }
}

extension String {
  fileprivate func padded(to width: Int) -> String { self + String(repeating: " ", count: max(0, width - count)) }
}

/// Charts of several recordings as SVG, one below the other, on the same time scale.
struct SVGChart {
  private static let (width, left, right) = (960, 70, 20)
  private static let (chart, caption, gap) = (120, 50, 30)
  private static var columns: Int { width - left - right }

  let text: String

  init(of recordings: [Recording]) {
    let length = recordings.map(\.length).max() ?? .zero
    let panel = SVGChart.caption + SVGChart.chart + SVGChart.gap
    let panels = recordings.enumerated().map { index, recording in
      SVGChart.panel(of: recording, over: length, from: panel * index)
    }
    let (width, height) = (SVGChart.width, panel * recordings.count)
    text = """
      <svg xmlns="http://www.w3.org/2000/svg" width="\(width)" height="\(height)" viewBox="0 0 \(width) \(height)" \
      font-family="system-ui, sans-serif" font-size="13">
      <title>Frame costs of \(recordings.count) ways to prepare photos</title>
      <rect width="\(width)" height="\(height)" fill="#fff"/>
      \(panels.joined(separator: "\n"))
      </svg>

      """
  }

  private static func panel(of recording: Recording, over length: Duration, from y: Int) -> String {
    let timeline = Timeline(of: recording.frames, over: length, columns: columns)
    let summary = recording.summary.map { "\($0.label): \($0.value)" }.joined(separator: " · ")
    let bottom = y + caption + chart
    let labels = (1...3).map { frames in
      text("\((Budget.frame * frames).milliseconds)", x: left - 6, y: bottom - height(Budget.frame * frames) + 4)
    }
    return """
      <g>
      <text x="\(left)" y="\(y + 22)" font-size="16" font-weight="bold">\(recording.title)</text>
      <text x="\(left)" y="\(y + 40)" fill="#555">\(summary)</text>
      \(bars(of: timeline, isMissed: false, from: bottom))
      \(bars(of: timeline, isMissed: true, from: bottom))
      <path stroke="#333" stroke-dasharray="4 3" d="M\(left) \(bottom - height(Budget.frame))h\(columns)"/>
      <path stroke="#333" d="M\(left) \(bottom)h\(columns)"/>
      \(labels.joined(separator: "\n"))
      \(text("0", x: left + 4, y: bottom + 16))
      \(text(length.seconds, x: left + columns, y: bottom + 16))
      </g>
      """
  }

  /// Returns the bars of one color as one path.
  private static func bars(of timeline: Timeline, isMissed: Bool, from bottom: Int) -> String {
    let bars = timeline.columns.enumerated().filter { (Budget.missed(at: $0.element) > 0) == isMissed }
    let shape = bars.map { "M\(left + $0.offset) \(bottom)v-\(height($0.element))h1v\(height($0.element))z" }.joined()
    return "<path fill=\"\(isMissed ? "#c62828" : "#64a0d8")\" d=\"\(shape)\"/>"
  }

  private static func height(_ cost: Duration) -> Int {
    Int((min(1, cost / Timeline.ceiling) * Double(chart)).rounded())
  }

  private static func text(_ text: String, x: Int, y: Int) -> String {
    "<text x=\"\(x)\" y=\"\(y)\" font-size=\"11\" fill=\"#555\" text-anchor=\"end\">\(text)</text>"
  }
}
