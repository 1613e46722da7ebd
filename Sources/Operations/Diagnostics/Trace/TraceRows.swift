/// An assignment of executions to the rows of a drawing, computed in O(n log n).
///
/// An operation that a thread executed from start to finish is on the row of that thread. An asynchronous operation is
/// on a row that is free for its whole execution. An operation with members is on the row of the enclosing one, unless
/// another one is drawn there at the time.
struct TraceRows {
  struct Row: Hashable {
    /// In the order of the drawing.
    enum Kind: Int { case members, worker, asynchronous }

    let kind: Kind
    let number: Int
  }

  let rows: [Row]
  /// The index in ``rows`` for each record that has executed.
  let rowOf: [Int: Int]

  init(_ records: [OperationTracer.Record], _ intervals: TraceIntervals) {
    var places: [Int: Row] = [:]
    var counts: [Row.Kind: Int] = [:]
    var free: [Row.Kind: [Row]] = [:]
    func freeRow(_ kind: Row.Kind) -> Row {
      if let row = free[kind]?.popLast() { return row }
      defer { counts[kind, default: 0] += 1 }
      return Row(kind: kind, number: counts[kind, default: 0])
    }
    // The finish times of the executions in progress on each thread, innermost last.
    var onThreads: [Int: [Duration]] = [:]
    // The operation that is currently drawn inside each one.
    var insides: [Int: Int] = [:]
    for event in intervals.events {
      guard let interval = intervals[event.id] else { continue }
      let record = records[event.id]
      if !event.isStart {
        if let outer = record.group, insides[outer] == record.id {
          insides[outer] = nil
        } else if let row = places[record.id], row.kind != .worker {
          free[row.kind, default: []].append(row)
        }
      } else if record.isGroup {
        if let outer = record.group, insides[outer] == nil, let around = intervals[outer],
          interval.upperBound <= around.upperBound, let row = places[outer]
        {
          insides[outer] = record.id
          places[record.id] = row
        } else {
          places[record.id] = freeRow(.members)
        }
      } else if let worker = record.thread, record.executeReturned == nil,
        Self.fits(interval, into: &onThreads[worker, default: []])
      {
        places[record.id] = Row(kind: .worker, number: worker)
      } else {
        places[record.id] = freeRow(.asynchronous)
      }
    }
    let rows = Set(places.values).sorted { ($0.kind.rawValue, $0.number) < ($1.kind.rawValue, $1.number) }
    let indices = Dictionary(uniqueKeysWithValues: zip(rows, rows.indices))
    self.rows = rows
    rowOf = places.compactMapValues { indices[$0] }
  }

  /// Records the finish of an execution, unless another thread finishes the enclosing execution first.
  private static func fits(_ interval: Range<Duration>, into ends: inout [Duration]) -> Bool {
    while let last = ends.last, last <= interval.lowerBound { ends.removeLast() }
    if let last = ends.last, last < interval.upperBound { return false }
    ends.append(interval.upperBound)
    return true
  }
}

extension TraceRows.Row {
  var name: String {
    switch kind {
    case .members: number == 0 ? "groups" : "groups (\(number + 1))"
    case .worker: number == 0 ? "main thread" : "worker \(number)"
    case .asynchronous: number == 0 ? "asynchronous" : "asynchronous (\(number + 1))"
    }
  }
}

/// The times in which operations executed, by the indices of their records.
typealias TraceIntervals = [Int: Range<Duration>]

extension TraceIntervals {
  /// The interval of an unfinished operation ends now. An interval is at least a nanosecond long, so that it is visible
  /// and its end comes after its start.
  init(_ records: [OperationTracer.Record], _ now: Duration) {
    self.init()
    for record in records {
      guard let start = record.started else { continue }
      self[record.id] = start..<Swift.max(record.finished ?? now, start + .nanoseconds(1))
    }
  }

  /// The starts and ends in chronological order. At equal times, ends precede starts, and longer intervals start first.
  var events: [(time: Duration, isStart: Bool, id: Int)] {
    let events = flatMap { id, interval in [(interval.lowerBound, true, id), (interval.upperBound, false, id)] }
    return events.sorted { left, right in
      if left.0 != right.0 { return left.0 < right.0 }
      if left.1 != right.1 { return right.1 }
      let (leftEnd, rightEnd) = (self[left.2]?.upperBound ?? .zero, self[right.2]?.upperBound ?? .zero)
      return leftEnd == rightEnd ? left.2 < right.2 : leftEnd > rightEnd
    }
  }

  var peak: Int {
    var (count, peak) = (0, 0)
    for event in events {
      count += event.isStart ? 1 : -1
      peak = Swift.max(peak, count)
    }
    return peak
  }
}
