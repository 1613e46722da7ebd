public import Foundation

extension OperationTracer {
  /// What has been recorded in the Trace Event Format, which ui.perfetto.dev, chrome://tracing and others open.
  ///
  /// A row for each thread that executed something from beginning to end, rows for what went on without a thread, and
  /// rows for groups, nested. Arrows lead from what was waited for to what waited. Times are in microseconds since the
  /// tracer was made. An operation that was cancelled, executing or not, has a mark; one that has not finished ends
  /// now.
  public func chromeTrace() -> Data {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.withoutEscapingSlashes, .sortedKeys]
    do { return try encoder.encode(ChromeTrace(records, now)) } catch {
      misuse("A trace could not be encoded: \(error). Report it as a defect of the package.")
    }
  }
}

/// The Trace Event Format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
private struct ChromeTrace: Encodable {
  struct Event: Encodable {
    var name: String
    var cat: String?
    /// X: an interval. i: a moment. s and f: an arrow. M: about a row.
    var ph: String
    var ts: Double?
    var dur: Double?
    var pid = 1
    var tid: Int
    var id: Int?
    /// An arrow leads to the interval around it.
    var bp: String?
    /// A moment belongs to a row.
    var s: String?
    var args: Arguments?
  }

  struct Arguments: Encodable {
    var name: String?
    var sortIndex: Int?
    var state: String?
    var group: String?
    var queue: String?
    /// For a turn, when nothing else was waited for any more.
    var waited: String?
    var error: String?

    private enum CodingKeys: String, CodingKey {
      case name, state, group, queue, waited, error
      case sortIndex = "sort_index"
    }
  }

  let traceEvents: [Event]
  let displayTimeUnit = "ms"

  init(_ records: [OperationTracer.Record], _ now: Duration) {
    let intervals = records.compactMap { TraceInterval($0, now) }
    let rows = TraceRows(records, intervals)
    let byID = Dictionary(uniqueKeysWithValues: intervals.map { ($0.id, $0) })
    // Perfetto shows rows in the order of their numbers, but first the one that has the number of the process.
    let firstRow = 2
    /// A row for those that never executed.
    let aside = firstRow + rows.rows.count
    var events = [Event(name: "process_name", ph: "M", tid: 0, args: Arguments(name: "Operations"))]
    let hasAside = records.contains { $0.cancelled != nil && $0.started == nil }
    for (index, name) in (rows.rows.map(\.name) + (hasAside ? ["never executed"] : [])).enumerated() {
      let tid = firstRow + index
      events.append(Event(name: "thread_name", ph: "M", tid: tid, args: Arguments(name: name)))
      events.append(Event(name: "thread_sort_index", ph: "M", tid: tid, args: Arguments(sortIndex: index)))
    }
    for record in records {
      let row = rows.rowOf[record.id].map { $0 + firstRow }
      if let interval = byID[record.id], let row {
        events.append(
          Event(
            name: record.name.forPerfetto,
            cat: record.isGroup ? "group" : "operation",
            ph: "X",
            ts: interval.start.microseconds,
            dur: (interval.end - interval.start).microseconds,
            tid: row,
            args: Arguments(record, in: records)
          )
        )
      }
      if let cancelled = record.cancelled {
        let name = "\(record.name) cancelled"
        events.append(
          Event(name: name, cat: "cancellation", ph: "i", ts: cancelled.microseconds, tid: row ?? aside, s: "t")
        )
      }
    }
    var arrows = 0
    for record in records {
      for dependency in record.dependencies {
        guard let from = byID[dependency], let to = byID[record.id], let fromRow = rows.rowOf[dependency],
          let toRow = rows.rowOf[record.id]
        else { continue }
        // Inside the two intervals, and not backwards: the end of a plain operation is heard of late.
        let departure = min(from.end - .nanoseconds(1), to.start)
        if departure < from.start { continue }
        arrows += 1
        var arrow = Event(
          name: "dependency",
          cat: "dependency",
          ph: "s",
          ts: departure.microseconds,
          tid: firstRow + fromRow,
          id: arrows
        )
        events.append(arrow)
        (arrow.ph, arrow.ts, arrow.tid, arrow.bp) = ("f", to.start.microseconds, firstRow + toRow, "e")
        events.append(arrow)
      }
    }
    traceEvents = events
  }
}

extension ChromeTrace.Arguments {
  fileprivate init(_ record: OperationTracer.Record, in records: [OperationTracer.Record]) {
    state = record.state.rawValue
    group = record.group.map { records[$0].name.forPerfetto }
    queue = record.queue?.forPerfetto
    error = record.error?.forPerfetto
    if let started = record.started, let ready = record.wasReady(in: records), started > ready {
      waited = (started - ready).reading
    }
  }
}

extension String {
  /// Perfetto (52) takes a backslash at the end, though it is written twice, for one that belongs to the quotation
  /// mark, and then opens nothing.
  fileprivate var forPerfetto: String { hasSuffix("\\") ? self + " " : self }
}

extension Duration {
  /// To the nanosecond, for the first 285 years.
  fileprivate var microseconds: Double {
    let seconds = min(max(components.seconds, -9_000_000_000), 9_000_000_000)
    return Double(seconds * 1_000_000_000 + components.attoseconds / 1_000_000_000) / 1000
  }
}
