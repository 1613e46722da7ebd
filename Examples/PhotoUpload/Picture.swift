/// The charts of all ways below each other, as SVG. One second is as wide in each of them.
struct Picture {
  private static let (width, left, right) = (960, 70, 20)
  private static let (chart, caption, gap) = (120, 50, 30)
  private static var columns: Int { width - left - right }

  let text: String

  init(of recordings: [Recording]) {
    let length = recordings.map(\.length).max() ?? .zero
    let panel = Picture.caption + Picture.chart + Picture.gap
    let panels = recordings.enumerated().map { index, recording in
      Picture.panel(of: recording, over: length, from: panel * index)
    }
    let (width, height) = (Picture.width, panel * recordings.count)
    text = """
      <svg xmlns="http://www.w3.org/2000/svg" width="\(width)" height="\(height)" viewBox="0 0 \(width) \(height)" \
      font-family="system-ui, sans-serif" font-size="13">
      <title>Frame times while \(recordings.count) uploads prepare photos</title>
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

  /// Those of a colour are one shape.
  private static func bars(of timeline: Timeline, isMissed: Bool, from bottom: Int) -> String {
    let bars = timeline.columns.enumerated().filter { (Budget.missed(after: $0.element) > 0) == isMissed }
    let shape = bars.map { "M\(left + $0.offset) \(bottom)v-\(height($0.element))h1v\(height($0.element))z" }.joined()
    return "<path fill=\"\(isMissed ? "#c62828" : "#64a0d8")\" d=\"\(shape)\"/>"
  }

  private static func height(_ duration: Duration) -> Int {
    Int((min(1, duration / Timeline.ceiling) * Double(chart)).rounded())
  }

  private static func text(_ text: String, x: Int, y: Int) -> String {
    "<text x=\"\(x)\" y=\"\(y)\" font-size=\"11\" fill=\"#555\" text-anchor=\"end\">\(text)</text>"
  }
}
