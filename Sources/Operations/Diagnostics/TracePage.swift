import Foundation

extension OperationTracer {
  /// Returns the recorded operations as a page in HTML, which refers to no other file.
  ///
  /// The page has a stall report of the traced operations that have not finished, the failures with their paths, the
  /// timeline of ``svg(width:)``, and the graph. The search dims all operations without the text in their name. A click
  /// on an operation, or the arrow keys, show its times and its error. The text after `#` in the address is the first
  /// search. The page has colors for light and dark.
  ///
  /// - Complexity: O(n log n) for n operations.
  public func html() -> String {
    // The weak references are loaded without the lock, because each loaded reference may be the last one.
    let unfinished = log.withLock { $0.operations }.compactMap(\.operation).filter { !$0.isFinished }
    let report = StallReport(of: unfinished, in: "the trace", lookingInto: [])
    return TracePage(records: records, now: now, report: report).text(summary: summary.description)
  }
}

private struct TracePage {
  let records: [OperationTracer.Record]
  let now: Duration
  let report: StallReport

  private var title: String {
    let names = records.filter { $0.group == nil }.map(\.name.brief)
    return (names.first ?? "No operations") + (names.count > 1 ? " and \((names.count - 1).others)" : "")
  }

  func text(summary: String) -> String {
    let causes = Set(report.roots.map(\.operation))
    let stuck = records.filter { $0.finished == nil && causes.contains($0.name) }.map(\.id)
    let time = Date.now.formatted(.iso8601.dateTimeSeparator(.space))
    let timeline = TracePicture(records, now, width: 1000, stuck: Set(stuck)).text(hasLegend: false)
    let legend = TracePicture.legend(of: timeline).map { kind, label in
      #"<span><svg width="14" height="12"><path class="\#(kind)" d="M1 1h12v10h-12z"/></svg> \#(label)</span>"#
    }
    return """
      <!DOCTYPE html>
      <html lang="en">
      <meta charset="utf-8">
      <meta name="viewport" content="width=device-width">
      <title>\(title.inMarkup), \(time.prefix(10))</title>
      <style>\(Self.style)</style>
      <h1>\(title.inMarkup)</h1>
      <p>\(time)
      \(summary.inMarkup)</p>
      <header>
        <input id="search" type="search" placeholder="Search by name ( / )"><output id="count"></output>
      </header>
      <aside id="details" aria-live="polite" hidden></aside>
      \(section("Not finished", report.entries.isEmpty ? [] : ["<pre>\(report.description.inMarkup)</pre>"]))
      \(section("Failures", failures.isEmpty ? [] : ["<ul>"] + failures + ["</ul>"]))
      <h2>Timeline</h2>
      <p class="legend">\(legend.joined(separator: "\n"))</p>
      <div>\(timeline)</div>
      <h2>Graph</h2>
      <div>\(TraceGraph(records).text)</div>
      <script>
      const records = \(details)
      \(Self.script)
      </script>
      </html>

      """
  }

  private func section(_ heading: String, _ lines: [String]) -> String {
    lines.isEmpty ? "" : "<h2>\(heading)</h2>\n" + lines.joined(separator: "\n")
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
        ("error", record.error), ("waiting", record.state == .pending ? record.obstacle(in: records) : nil),
        ("started", record.started?.reading), ("took", record.duration?.reading),
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
    :root { color-scheme: light dark; --line: #8886 }
    body { font: 14px ui-sans-serif, system-ui, sans-serif; margin: 16px; background: Canvas; color: CanvasText }
    h1 { font-size: 22px; margin: 0 } h2 { font-size: 16px; margin: 24px 0 8px }
    p { margin: 4px 0; white-space: pre-line }
    header { position: sticky; top: 0; padding: 8px 0; background: Canvas; z-index: 1 }
    input { font: inherit; padding: 5px 10px; width: min(280px, 60%); margin-right: 12px }
    input, aside, pre, div { background: Canvas; border: 1px solid var(--line); border-radius: 8px }
    input { color: CanvasText } input:focus { outline: 2px solid #2f81f7; outline-offset: -1px }
    div { overflow: auto; max-height: 85vh }
    aside { position: fixed; right: 16px; bottom: 16px; max-width: min(480px, 80%); max-height: 50vh; overflow: auto }
    aside, pre { padding: 12px; margin: 0; z-index: 2 } aside b { display: block; font-weight: 600 }
    pre { white-space: pre-wrap; border-left: 4px solid #cf222e }
    ul { margin: 0; padding: 0; list-style: none } li { padding: 2px 0 } li::before { content: "✕ "; color: #cf222e }
    .legend { white-space: normal } .legend span { display: inline-block; margin-right: 16px }
    .legend svg { vertical-align: -2px }
    [data-id] { cursor: pointer; outline: none } [data-id].other { opacity: .12 }
    .row:focus text, .node:focus text, li:focus, .selected text, li.selected { font-weight: 700 }
    .row.selected > rect, .node.selected rect { stroke: CanvasText; stroke-width: 2 }
    .row.selected > .group { stroke-width: 4 }
    svg .page { fill: none }
    .node rect { fill-opacity: .18; stroke: #2f81f7; stroke-width: 1.5 } .node .finished { stroke-width: 0 }
    .node .executing { fill-opacity: 0 } .node .failed { stroke: #cf222e }
    .node .pending, .node .cancelled { stroke: GrayText } .node .box { fill: none; stroke-width: 1 }
    .arrow { fill: none; stroke: GrayText; stroke-opacity: .6 }
    .arrow.selected { stroke: #2f81f7; stroke-opacity: 1; stroke-width: 2 }
    """

  private static let script = """
    const shown = [...document.querySelectorAll("[data-id]")]
    const [search, count, details] = ["search", "count", "details"].map(id => document.getElementById(id))
    for (const element of shown) { element.tabIndex = 0; element.setAttribute("role", "button") }
    function find() {
      const text = search.value.toLowerCase()
      const hits = records.map(lines => lines[0][1].toLowerCase().includes(text))
      for (const element of shown) element.classList.toggle("other", !hits[element.dataset.id])
      if (text) shown.find(element => hits[element.dataset.id])?.scrollIntoView({ block: "nearest" })
      count.textContent = text && hits.filter(Boolean).length + " of " + records.length
    }
    function select(id) {
      for (const element of shown) element.classList.toggle("selected", element.dataset.id === id)
      for (const arrow of document.querySelectorAll(".arrow")) {
        arrow.classList.toggle("selected", arrow.dataset.ends.split(" ").includes(id))
      }
      details.hidden = id === undefined
      details.replaceChildren(...(details.hidden ? [] : records[id].slice(1)).flatMap(([label, text]) =>
        [Object.assign(document.createElement("b"), { textContent: label }), text]))
    }
    document.addEventListener("click", event => {
      if (!details.contains(event.target)) select(event.target.closest("[data-id]")?.dataset.id)
    })
    document.addEventListener("keydown", event => {
      const step = { Enter: 0, " ": 0, ArrowDown: 1, ArrowUp: -1 }[event.key]
      const here = shown.indexOf(document.activeElement), next = here < 0 ? undefined : shown[here + step]
      if (event.key === "Escape") return select()
      if (event.key === "/" && document.activeElement !== search) search.focus()
      else if (next) {
        next.focus()
        select(next.dataset.id)
      } else return
      event.preventDefault()
    })
    search.value = decodeURIComponent(location.hash.slice(1))
    search.addEventListener("input", find)
    find()
    """
}
