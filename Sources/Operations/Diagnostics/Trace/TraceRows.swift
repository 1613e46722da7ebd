/// A row of a drawing, to which executions are assigned in O(n log n). The cases are in the order of the drawing.
///
/// An operation that a thread executed from start to finish is on the row of that thread. An asynchronous operation is
/// on a row that is free for its whole execution. An operation with members is on the row of the enclosing one, unless
/// another one is drawn there at the time.
enum TraceRow: Hashable, Comparable {
  case members(Int)
  case worker(Int)
  case asynchronous(Int)

  var name: String {
    switch self {
    case .members(let number): number == 0 ? "groups" : "groups (\(number + 1))"
    case .worker(let number): number == 0 ? "main thread" : "worker \(number)"
    case .asynchronous(let number): number == 0 ? "asynchronous" : "asynchronous (\(number + 1))"
    }
  }

  /// Returns the rows, and for each record that has executed the index of its row.
  static func rows(
    of records: [OperationTracer.Record],
    _ intervals: TraceIntervals
  ) -> (rows: [TraceRow], indices: [Int: Int]) {
    var places: [Int: TraceRow] = [:]
    var members: (free: [Int], count: Int) = ([], 0)
    var asynchronous = members
    func take(_ rows: inout (free: [Int], count: Int)) -> Int {
      if let number = rows.free.popLast() { return number }
      defer { rows.count += 1 }
      return rows.count
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
        } else {
          switch places[record.id] {
          case .members(let number): members.free.append(number)
          case .asynchronous(let number): asynchronous.free.append(number)
          case .worker, nil: break
          }
        }
      } else if record.isGroup {
        if let outer = record.group, insides[outer] == nil, let around = intervals[outer],
          interval.upperBound <= around.upperBound, let row = places[outer]
        {
          insides[outer] = record.id
          places[record.id] = row
        } else {
          places[record.id] = .members(take(&members))
        }
      } else if let worker = record.thread, record.executeReturned == nil,
        Self.fits(interval, into: &onThreads[worker, default: []])
      {
        places[record.id] = .worker(worker)
      } else {
        places[record.id] = .asynchronous(take(&asynchronous))
      }
    }
    let rows = Set(places.values).sorted()
    let indices = Dictionary(uniqueKeysWithValues: zip(rows, rows.indices))
    return (rows, places.compactMapValues { indices[$0] })
  }

  /// Records the finish of an execution, unless another thread finishes the enclosing execution first.
  private static func fits(_ interval: Range<Duration>, into ends: inout [Duration]) -> Bool {
    while let last = ends.last, last <= interval.lowerBound { ends.removeLast() }
    if let last = ends.last, last < interval.upperBound { return false }
    ends.append(interval.upperBound)
    return true
  }
}

/// The times in which operations executed, by the indices of their records.
typealias TraceIntervals = [Int: Range<Duration>]

extension TraceIntervals {
  /// An unfinished interval ends now. Each takes at least a nanosecond, to be visible and to end after its start.
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
