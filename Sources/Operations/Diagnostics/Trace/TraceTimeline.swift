extension OperationTracer {
  /// Returns a drawing of the recorded operations for a terminal, with a line for each operation.
  ///
  /// A group is a bracket with its members below. The other marks show how an operation spent its time:
  ///
  /// - `:` The operation waited for its keys. Inside a bracket, a retry waited for them before its next attempt.
  /// - `·` The operation was ready and waited for a slot.
  /// - `█` The operation executed. `─` It backed off.
  /// - `×` The operation was cancelled without executing.
  ///
  /// Lines have no trailing spaces.
  ///
  /// ```
  ///             0 s                           62 ms
  /// Import      ├──────────────────────────────────┤  62 ms
  ///   Download  ████████████████                      29 ms
  ///   Parse                     █████████████         24 ms
  ///   Store                                  ███████  12 ms, failed
  /// ```
  ///
  /// - Parameters:
  ///   - width: The largest number of columns in a line. A value below 40 counts as 40, and a value above 10,000 as
  ///     10,000. Long names are shortened to leave room for the bars.
  ///   - lines: The largest number of operations to draw. If there are more, the timeline shows the operations that
  ///     took longest, and a last line says how to draw all.
  public func timeline(width: Int = 80, lines: Int = 100) -> String {
    TraceTimeline(records, now, width: min(max(width, 40), 10_000), lines: max(lines, 0)).text
  }
}

private struct TraceTimeline {
  private static let shortestBar = 10

  private let records: [OperationTracer.Record]
  private let now: Duration
  private let start: Duration
  private let end: Duration
  private let nameWidth: Int
  private let barWidth: Int
  private let lines: [(record: OperationTracer.Record, name: String, remark: String)]

  init(_ records: [OperationTracer.Record], _ now: Duration, width: Int, lines count: Int) {
    self.records = records
    self.now = now
    start = records.compactMap { $0.started ?? $0.cancelled }.min() ?? .zero
    end = records.compactMap { $0.started == nil ? $0.cancelled : $0.finished ?? now }.max() ?? start
    let shown = TraceTimeline.longest(count, of: records)
    let remarks = shown.map { TraceTimeline.remark(records[$0.id]) }
    let rest = width - 4 - (remarks.map(\.count).max() ?? 0)
    let nameLimit = min(28, max(1, rest - TraceTimeline.shortestBar))
    let names = shown.map { id, depth in
      let indentation = String(repeating: "  ", count: min(depth, nameLimit / 4))
      return indentation + records[id].name.inOneLine.shortened(to: nameLimit - indentation.count)
    }
    nameWidth = names.map(\.columns).max() ?? 0
    barWidth = max(TraceTimeline.shortestBar, rest - nameWidth)
    lines = shown.indices.map { (records[shown[$0].id], names[$0], remarks[$0]) }
  }

  /// Returns the operations that took longest, with members below their group. A finished group took at least as long
  /// as its members, so it is included with them. An unfinished operation counts as zero.
  private static func longest(_ count: Int, of records: [OperationTracer.Record]) -> [(id: Int, depth: Int)] {
    let outline = GraphDrawing.outline(of: records.map(\.group))
    if outline.count <= count { return outline }
    let durations = outline.map { records[$0.id].duration ?? .zero }
    let longest = outline.indices.sorted { (durations[$1], $0) < (durations[$0], $1) }
    return longest.prefix(count).sorted().map { outline[$0] }
  }

  private static func remark(_ record: OperationTracer.Record) -> String {
    let duration = record.duration?.reading
    switch record.state {
    case .finished: return duration ?? ""
    case .failed, .cancelled:
      let executing = record.started != nil && record.finished == nil ? "executing" : nil
      return [duration ?? executing, record.state.rawValue].compactMap(\.self).joined(separator: ", ")
    case .executing, .pending: return record.state.rawValue
    }
  }

  var text: String {
    if records.isEmpty { return "Nothing has been recorded.\n" }
    let total = (end - start).reading
    let scale = "0 s ".padded(to: barWidth - total.count) + total
    var text = "".padded(to: nameWidth) + "  " + scale + "\n"
    for (record, name, remark) in lines {
      var line = name.padded(to: nameWidth) + "  " + bar(record).padded(to: barWidth) + "  " + remark
      while line.last == " " { line.removeLast() }
      text += line + "\n"
    }
    let rest = records.count - lines.count
    return rest > 0 ? text + "… and \(rest) more. timeline(lines: \(records.count)) draws all.\n" : text
  }

  private func bar(_ record: OperationTracer.Record) -> String {
    guard let started = record.started else {
      return record.cancelled.map { String(repeating: " ", count: column($0)) + "×" } ?? ""
    }
    let from = column(started)
    let length = max(column(record.finished ?? now, isEnd: true), from) - from + 1
    let waits = record.waits(until: started, in: records)
    let (requested, ready) = (column(waits.forKeys), column(waits.forSlot))
    return String(repeating: " ", count: requested) + String(repeating: ":", count: ready - requested)
      + String(repeating: record.isGroup ? " " : "·", count: from - ready)
      + (record.isGroup ? bracket(record, from: from, length) : attempts(record, from: from, length))
  }

  private func attempts(_ record: OperationTracer.Record, from: Int, _ length: Int) -> String {
    var marks = Array(repeating: "█" as Character, count: length)
    for pause in record.pauses(until: now) {
      let columns = column(pause.lowerBound) + 1..<max(column(pause.lowerBound) + 1, column(pause.upperBound))
      for column in columns where marks.indices.contains(column - from) { marks[column - from] = "─" }
    }
    return String(marks)
  }

  private func bracket(_ record: OperationTracer.Record, from: Int, _ length: Int) -> String {
    if length == 1 { return "│" }
    var inside = Array(repeating: "─" as Character, count: length - 2)
    for wait in record.keyWaitsAfterPauses(until: now) {
      for column in column(wait.lowerBound)...max(column(wait.lowerBound), column(wait.upperBound, isEnd: true)) {
        if inside.indices.contains(column - from - 1) { inside[column - from - 1] = ":" }
      }
    }
    return "├" + String(inside) + "┤"
  }

  private func column(_ time: Duration, isEnd: Bool = false) -> Int {
    guard end > start else { return 0 }
    let position = (time - start) / (end - start) * Double(barWidth)
    return min(max(Int(isEnd ? position.rounded(.up) - 1 : position), 0), barWidth - 1)
  }
}
