import Foundation

extension OperationTracer {
  /// Returns the recorded operations as a page in HTML, which refers to no other file.
  ///
  /// The page has the timeline of ``svg(width:)``, the graph, the failures with their paths, and a stall report of the
  /// traced operations that have not finished. The search dims all operations without the text in their name, and a
  /// click on an operation shows its times and its error. The text after `#` in the address is the first search. The
  /// page has colors for light and dark.
  ///
  /// - Complexity: O(n log n) for n operations.
  public func html() -> String {
    // The weak references are loaded without the lock, because each loaded reference may be the last one.
    let unfinished = log.withLock { $0.operations }.compactMap(\.operation).filter { !$0.isFinished }
    let report = StallReport(of: unfinished, in: "the trace", lookingInto: [])
    return TracePage(records, now).text(summary: summary.description, report: report.description)
  }
}

private struct TracePage {
  private static let (width, height, gap) = (150, 26, 34)

  private let records: [OperationTracer.Record]
  private let now: Duration
  /// In the graph, time goes to the right: an operation is in the column after its last dependency. A chain is on one row,
  /// and a group is a box around its members, whose last column and row are its own.
  private var places: [(column: Int, row: Int, lastColumn: Int, lastRow: Int)] = []
  private var rows = 0

  init(_ records: [OperationTracer.Record], _ now: Duration) {
    (self.records, self.now) = (records, now)
    let graph = OperationGraph(records)
    var columns = [Int](repeating: 0, count: graph.points.count)
    for point in graph.order.order { columns[point] = graph.waits[point].map { columns[$0] + 1 }.max() ?? 0 }
    places = records.map { record in
      let column = columns[graph.starts[record.id]]
      return (column, 0, column, 0)
    }
    var ends: Set<Int> = []
    let outline = GraphDrawing.outline(of: records.map(\.group))
    for (id, _) in outline {
      let before = records[id].dependencies.first { ends.contains($0) && records[$0].group == records[id].group }
      if !records[id].isGroup, let before, ends.remove(before) != nil {
        places[id].row = places[before].row
      } else {
        places[id].row = rows
        rows += 1
      }
      places[id].lastRow = places[id].row
      if !records[id].isGroup { ends.insert(id) }
    }
    for (id, _) in outline.reversed() {
      guard let group = records[id].group else { continue }
      places[group].lastColumn = max(places[group].lastColumn, places[id].lastColumn)
      places[group].lastRow = max(places[group].lastRow, places[id].lastRow)
    }
  }

  func text(summary: String, report: String) -> String {
    """
    <!DOCTYPE html>
    <html lang="en">
    <meta charset="utf-8">
    <title>Operations</title>
    <style>\(Self.style)</style>
    <header>
      <input id="search" type="search" placeholder="Search by name" autofocus><output id="count"></output>
      <p>\(summary.inMarkup)</p>
    </header>
    <aside id="details" hidden></aside>
    <h2>Timeline</h2>
    <div>\(TracePicture(records, now, width: 1000).text)</div>
    <h2>Graph</h2>
    <div>\(graph)</div>
    <h2>Failures</h2>
    <ul id="failures">\(failures.isEmpty ? "None." : failures.joined(separator: "\n"))</ul>
    <h2>Stall report</h2>
    <pre>\(report.inMarkup)</pre>
    <script>
    const records = \(details)
    \(Self.script)</script>
    </html>

    """
  }

  // MARK: The graph

  private func x(_ column: Int) -> Int { 12 + column * (Self.width + Self.gap) }
  private func y(_ row: Int) -> Int { 12 + row * (Self.height + 12) }

  private var graph: String {
    let size = (x((places.map(\.lastColumn).max() ?? 0) + 1), y(rows))
    let arrows = records.flatMap { record in record.dependencies.map { arrow(from: $0, to: record.id) } }
    return """
      <svg width="\(size.0)" height="\(size.1)">
      \((arrows + records.map(node)).joined(separator: "\n"))
      </svg>
      """
  }

  private func arrow(from: Int, to: Int) -> String {
    let (left, top) = (x(places[from].lastColumn) + Self.width, y(places[from].row) + Self.height / 2)
    let (right, bottom) = (x(places[to].column), y(places[to].row) + Self.height / 2)
    let middle = (left + right) / 2
    return """
      <path class="arrow" d="M\(left) \(top)C\(middle) \(top) \(middle) \(bottom) \(right) \(bottom)l-6 -4m6 4l-6 4"/>
      """
  }

  private func node(_ record: OperationTracer.Record) -> String {
    let place = places[record.id]
    let (left, top) = (x(place.column), y(place.row))
    let width = x(place.lastColumn) + Self.width - left
    let height = y(place.lastRow) + Self.height - top
    let kind = record.isGroup ? "box" : record.state.rawValue
    let name = record.name.inOneLine
    return """
      <g class="node" data-id="\(record.id)"><title>\(name.inMarkup)</title>\
      <rect class="\(kind)" x="\(left)" y="\(top)" width="\(width)" height="\(height + (kind == "box" ? 6 : 0))" rx="4"/>\
      <text x="\(left + 8)" y="\(top + 17)">\(name.shortened(to: 20).inMarkup)</text></g>
      """
  }

  // MARK: Failures and details

  private func path(_ record: OperationTracer.Record) -> [String] {
    records.nesting(of: record.id).map { records[$0].name }.reversed()
  }

  /// The errors of the innermost operations, even if a retry or a group has recovered from them.
  private var failures: [String] {
    let outer = Set(records.filter { $0.error != nil }.compactMap(\.group))
    return records.compactMap { record in
      guard let error = record.error, !outer.contains(record.id) else { return nil }
      let text = "\(path(record).joined(separator: " › ")): \(error)"
      return "<li data-id=\"\(record.id)\">\(text.inOneLine.inMarkup)</li>"
    }
  }

  /// The name of each operation and the lines to show on a click, as JSON.
  private var details: String {
    let details = records.map { record -> [[String]] in
      let granted = record.ready ?? record.started ?? record.finished ?? now
      let keys = record.requestedKeys.map { (granted - $0).reading }
      let lines: [(String, String?)] = [
        ("operation", path(record).joined(separator: " › ")), ("state", record.state.rawValue),
        ("error", record.error), ("started", record.started?.reading), ("took", record.duration?.reading),
        ("waited for keys", keys), ("waited for a slot", record.wait(in: records)?.reading),
        ("queue", record.queue),
        ("after", record.dependencies.isEmpty ? nil : record.dependencies.map { records[$0].name }.listed { $0 }),
      ]
      return [["", record.name]] + lines.compactMap { label, text in text.map { [label, $0.inOneLine] } }
    }
    // JSON never has this character outside of a string, where it could end the script.
    let json = (try? JSONEncoder().encode(details)).map { String(decoding: $0, as: UTF8.self) } ?? "[]"
    return json.replacing("<", with: "\\u003c")
  }

  // MARK: The code of the page

  private static let style = """
    :root { color-scheme: light dark }
    body { font: 14px ui-sans-serif, system-ui, sans-serif; margin: 0 16px 48px }
    header { position: sticky; top: 0; padding: 12px 0; background: Canvas }
    header p { margin: 8px 0 0; white-space: pre-line }
    input { font: inherit; padding: 4px 8px; width: 280px; margin-right: 12px }
    div { overflow: auto; max-height: 80vh }
    aside { position: fixed; right: 16px; bottom: 16px; max-width: 480px; max-height: 60vh; overflow: auto }
    aside, pre { background: Canvas; border: 1px solid GrayText; border-radius: 8px; padding: 12px }
    aside b { display: block; font-weight: 600 }
    pre { white-space: pre-wrap }
    [data-id] { cursor: pointer }
    [data-id].other { opacity: 0.12 }
    .box { fill: none; stroke: GrayText } .arrow { fill: none; stroke: GrayText }
    .node .finished, .node .executing, .node .failed { fill-opacity: 0.25 }
    """

  private static let script = """
    const shown = [...document.querySelectorAll("[data-id]")]
    const search = document.getElementById("search"), details = document.getElementById("details")
    function find() {
      const text = search.value.toLowerCase()
      const hits = records.map(lines => lines[0][1].toLowerCase().includes(text))
      for (const element of shown) element.classList.toggle("other", !hits[element.dataset.id])
      const first = text && shown.find(element => hits[element.dataset.id])
      if (first) first.scrollIntoView({ block: "nearest" })
      document.getElementById("count").textContent = hits.filter(Boolean).length + " of " + records.length
    }
    document.addEventListener("click", event => {
      const element = event.target.closest("[data-id]")
      details.hidden = !element
      details.replaceChildren()
      for (const [label, text] of element ? records[element.dataset.id].slice(1) : []) {
        details.append(Object.assign(document.createElement("b"), { textContent: label }), text)
      }
    })
    search.value = decodeURIComponent(location.hash.slice(1))
    search.addEventListener("input", find)
    find()

    """
}
