public import Foundation

extension OperationTracer {
  /// Returns the recorded operations in the Trace Event Format, which ui.perfetto.dev and chrome://tracing open.
  ///
  /// The trace has a row for each thread that executed operations from start to finish, rows for asynchronous
  /// operations, and rows for groups, which are nested. Arrows lead from an operation to its dependents. A cancelled
  /// operation has a mark. An unfinished operation ends at the time of the call. Times are in microseconds.
  public func chromeTrace() -> Data {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.withoutEscapingSlashes, .sortedKeys]
    do { return try encoder.encode(ChromeTrace(records, now)) } catch {
      misuse("The trace could not be encoded: \(error). Report it as a defect of the package.")
    }
  }
}

/// The Trace Event Format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
private struct ChromeTrace: Encodable {
  struct Event: Encodable {
    var name: String
    var cat: String?
    /// X is an interval, i an instant, s and f the ends of an arrow, M metadata of a row.
    var ph: String
    var ts: Double?
    var dur: Double?
    var pid = 1
    var tid: Int
    var id: Int?
    /// "e" binds an arrow to the enclosing interval.
    var bp: String?
    /// "t" is the row of an instant.
    var s: String?
    var args: Arguments?
  }

  struct Arguments: Encodable {
    var name: String?
    var sortIndex: Int?
    var state: String?
    var group: String?
    var queue: String?
    var waited: String?
    var waitedForKeys: String?
    var error: String?

    private enum CodingKeys: String, CodingKey {
      case name, state, group, queue, waited, error
      case sortIndex = "sort_index"
      case waitedForKeys = "waited_for_keys"
    }
  }

  let traceEvents: [Event]
  let displayTimeUnit = "ms"

  init(_ records: [OperationTracer.Record], _ now: Duration) {
    let intervals = TraceIntervals(records, now)
    let (rows, rowOf) = TraceRow.rows(of: records, intervals)
    // Perfetto orders rows by number, except that the row with the number of the process comes first.
    let firstRow = 2
    let neverExecutedRow = firstRow + rows.count
    func row(of record: Int) -> Int { rowOf[record].map { firstRow + $0 } ?? neverExecutedRow }
    var events = [Event(name: "process_name", ph: "M", tid: 0, args: Arguments(name: "Operations"))]
    let hasNeverExecuted = records.contains { $0.cancelled != nil && $0.started == nil }
    for (index, name) in (rows.map(\.name) + (hasNeverExecuted ? ["never executed"] : [])).enumerated() {
      let tid = firstRow + index
      events.append(Event(name: "thread_name", ph: "M", tid: tid, args: Arguments(name: name)))
      events.append(Event(name: "thread_sort_index", ph: "M", tid: tid, args: Arguments(sortIndex: index)))
    }
    var arrows = 0
    for record in records {
      let tid = row(of: record.id)
      if let cancelled = record.cancelled {
        let (name, time) = ("\(record.name) cancelled", cancelled.microseconds)
        events.append(Event(name: name, cat: "cancellation", ph: "i", ts: time, tid: tid, s: "t"))
      }
      guard let interval = intervals[record.id] else { continue }
      let (name, category) = (record.name.forPerfetto, record.isGroup ? "group" : "operation")
      let start = interval.lowerBound.microseconds
      let length = (interval.upperBound - interval.lowerBound).microseconds
      let args = Arguments(record, in: records)
      events.append(Event(name: name, cat: category, ph: "X", ts: start, dur: length, tid: tid, args: args))
      for dependency in record.dependencies {
        guard let from = intervals[dependency] else { continue }
        // An arrow must start inside the first interval, end inside the second one, and not lead backwards. The finish
        // of a plain Foundation operation is recorded late, so it may follow the start of a dependent.
        let departure = min(from.upperBound - .nanoseconds(1), interval.lowerBound)
        if departure < from.lowerBound { continue }
        arrows += 1
        let (kind, leaves, origin) = ("dependency", departure.microseconds, row(of: dependency))
        events.append(Event(name: kind, cat: kind, ph: "s", ts: leaves, tid: origin, id: arrows))
        events.append(Event(name: kind, cat: kind, ph: "f", ts: start, tid: tid, id: arrows, bp: "e"))
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
    waited = record.wait(in: records)?.reading
    if let requested = record.requestedKeys, let granted = record.ready ?? record.started, granted > requested {
      waitedForKeys = (granted - requested).reading
    }
  }
}

extension String {
  /// Perfetto 52 reads an escaped backslash at the end of a string as an escape of the quotation mark.
  fileprivate var forPerfetto: String { hasSuffix("\\") ? self + " " : self }
}

extension Duration {
  /// Exact to the nanosecond for the first 285 years.
  fileprivate var microseconds: Double {
    let seconds = min(max(components.seconds, -9_000_000_000), 9_000_000_000)
    return Double(seconds * 1_000_000_000 + components.attoseconds / 1_000_000_000) / 1000
  }
}
