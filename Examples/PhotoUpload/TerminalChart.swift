/// Bars of characters.
struct TerminalChart {
  private static let width = 72
  private static let rows = 6
  /// In eighths of a row, from the bottom.
  private static let blocks = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"]

  let lines: [String]

  init(of recording: Recording) {
    let columns = Timeline(of: recording.frames, over: recording.length, columns: TerminalChart.width).columns
    let bars = (0..<TerminalChart.rows).reversed().map { row in
      TerminalChart.label(ofRow: row) + columns.map { TerminalChart.block(of: $0, inRow: row) }.joined()
    }
    let end = recording.length.seconds
    let axis = "0".padded(to: TerminalChart.width - end.count) + end
    let ground = String(repeating: "─", count: TerminalChart.width)
    lines = bars + ["".padded(to: 9) + "└" + ground, "".padded(to: 10) + axis]
  }

  /// A frame's time is two rows high: what reaches into the third has been missed.
  private static func label(ofRow row: Int) -> String {
    let height = Timeline.ceiling * (row + 1) / rows
    return row % 2 == 0 ? "".padded(to: 9) + "│" : height.milliseconds.padded(to: 8) + " ┤"
  }

  private static func block(of duration: Duration, inRow row: Int) -> String {
    if duration > Timeline.ceiling, row == rows - 1 { return "▲" }
    let height = duration / Timeline.ceiling * Double(rows) - Double(row)
    // Rounded up: however little it takes of the third row is seen there.
    return blocks[Int((min(max(height, 0), 1) * 8).rounded(.up))]
  }
}

extension String {
  fileprivate func padded(to width: Int) -> String { self + String(repeating: " ", count: max(0, width - count)) }
}
