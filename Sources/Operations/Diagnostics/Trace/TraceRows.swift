/// An assignment of executions to the rows of a drawing, computed in O(n log n).
///
/// An operation that a thread executed from start to finish is on the row of that thread. An asynchronous operation is
/// on a row that is free for its whole execution. A group is on the row of the enclosing group, unless another group is
/// drawn there at the time.
struct TraceRows {
  enum Kind: Hashable {
    case groups
    case worker(Int)
    case asynchronous
  }

  struct Row: Hashable {
    let kind: Kind
    /// The number among the rows of this kind.
    let number: Int
  }

  /// The rows, from top to bottom.
  private(set) var rows: [Row] = []
  /// The index in ``rows`` for each record that has executed.
  private(set) var rowOf: [Int: Int] = [:]

  init(_ records: [OperationTracer.Record], _ intervals: [TraceInterval]) {
    var places: [Int: Row] = [:]
    var workers: Set<Int> = []
    var (groups, asynchronous) = (Lanes(), Lanes())
    /// The finish times of the executions in progress on each thread, innermost last.
    var onThreads: [Int: [Duration]] = [:]
    /// The group that is currently drawn inside each group.
    var insides: [Int: Int] = [:]
    let ends = Dictionary(uniqueKeysWithValues: intervals.map { ($0.id, $0.end) })
    for event in TraceInterval.events(of: intervals) {
      let interval = intervals[event.index]
      let record = records[interval.id]
      if record.isGroup {
        let outer = record.group.flatMap { ends[$0] == nil ? nil : $0 }
        if !event.isStart {
          if let outer, insides[outer] == record.id { insides[outer] = nil } else { groups.leave(record.id) }
        } else if let outer, insides[outer] == nil, let end = ends[outer], interval.end <= end, let row = places[outer]
        {
          insides[outer] = record.id
          places[record.id] = row
        } else {
          places[record.id] = Row(kind: .groups, number: groups.enter(record.id))
        }
      } else if !event.isStart {
        asynchronous.leave(record.id)
      } else if let worker = record.thread, record.executeReturned == nil,
        Self.fits(interval, into: &onThreads[worker, default: []])
      {
        workers.insert(worker)
        places[record.id] = Row(kind: .worker(worker), number: 0)
      } else {
        places[record.id] = Row(kind: .asynchronous, number: asynchronous.enter(record.id))
      }
    }
    rows += (0..<groups.count).map { Row(kind: .groups, number: $0) }
    rows += workers.sorted().map { Row(kind: .worker($0), number: 0) }
    rows += (0..<asynchronous.count).map { Row(kind: .asynchronous, number: $0) }
    let indices = Dictionary(uniqueKeysWithValues: zip(rows, rows.indices))
    rowOf = places.compactMapValues { indices[$0] }
  }

  /// Returns whether an execution finishes before the enclosing execution on its thread, and records its finish in that
  /// case.
  ///
  /// The enclosing execution may finish first, because another thread can finish it.
  private static func fits(_ interval: TraceInterval, into ends: inout [Duration]) -> Bool {
    while let last = ends.last, last <= interval.start { ends.removeLast() }
    if let last = ends.last, last < interval.end { return false }
    ends.append(interval.end)
    return true
  }

  /// Numbers that are reused when they become free.
  private struct Lanes {
    private(set) var count = 0
    private var free: [Int] = []
    private var taken: [Int: Int] = [:]

    mutating func enter(_ id: Int) -> Int {
      let lane = free.popLast() ?? count
      if lane == count { count += 1 }
      taken[id] = lane
      return lane
    }

    mutating func leave(_ id: Int) {
      if let lane = taken.removeValue(forKey: id) { free.append(lane) }
    }
  }
}

extension TraceRows.Row {
  var name: String {
    switch kind {
    case .groups: number == 0 ? "groups" : "groups (\(number + 1))"
    case .worker(0): "main thread"
    case .worker(let worker): "worker \(worker)"
    case .asynchronous: number == 0 ? "asynchronous" : "asynchronous (\(number + 1))"
    }
  }
}

/// The time in which an operation executed.
struct TraceInterval {
  /// The index of the record.
  let id: Int
  let start: Duration
  let end: Duration

  /// Creates the interval of a record, or returns nil if the operation never executed.
  ///
  /// The interval of an unfinished operation ends now. An interval is at least a nanosecond long, so that it is visible
  /// and its end comes after its start.
  init?(_ record: OperationTracer.Record, _ now: Duration) {
    guard let start = record.started else { return nil }
    (id, self.start, end) = (record.id, start, max(record.finished ?? now, start + .nanoseconds(1)))
  }

  /// Returns the starts and ends in chronological order. At equal times, ends precede starts, and longer intervals
  /// start first.
  static func events(of intervals: [Self]) -> [(time: Duration, isStart: Bool, index: Int)] {
    let events = intervals.indices.flatMap { [(intervals[$0].start, true, $0), (intervals[$0].end, false, $0)] }
    return events.sorted { left, right in
      if left.0 != right.0 { return left.0 < right.0 }
      if left.1 != right.1 { return right.1 }
      let (leftEnd, rightEnd) = (intervals[left.2].end, intervals[right.2].end)
      return leftEnd == rightEnd ? left.2 < right.2 : leftEnd > rightEnd
    }
  }

  /// Returns the largest number of intervals that overlap.
  static func peak(of intervals: [Self]) -> Int {
    var (count, peak) = (0, 0)
    for event in events(of: intervals) {
      count += event.isStart ? 1 : -1
      peak = max(peak, count)
    }
    return peak
  }
}
