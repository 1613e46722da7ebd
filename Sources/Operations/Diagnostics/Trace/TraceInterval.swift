/// When an operation executed.
struct TraceInterval {
  /// The record's.
  let id: Int
  let start: Duration
  let end: Duration

  /// Nil if it has never executed. What has no end yet ends now, and what took no time at all takes a nanosecond, so
  /// that it can be seen, and its end comes after its beginning.
  init?(_ record: OperationTracer.Record, _ now: Duration) {
    guard let start = record.started else { return nil }
    (id, self.start, end) = (record.id, start, max(record.finished ?? now, start + .nanoseconds(1)))
  }

  /// Beginnings and ends in the order of time. Of those at the same time the ends come first, and then the beginnings
  /// of those that take longest.
  static func events(of intervals: [Self]) -> [(time: Duration, isStart: Bool, index: Int)] {
    let events = intervals.indices.flatMap { [(intervals[$0].start, true, $0), (intervals[$0].end, false, $0)] }
    return events.sorted { left, right in
      if left.0 != right.0 { return left.0 < right.0 }
      if left.1 != right.1 { return right.1 }
      let (leftEnd, rightEnd) = (intervals[left.2].end, intervals[right.2].end)
      return leftEnd == rightEnd ? left.2 < right.2 : leftEnd > rightEnd
    }
  }

  /// How many there were at once.
  static func peak(of intervals: [Self]) -> Int {
    var (count, peak) = (0, 0)
    for event in events(of: intervals) {
      count += event.isStart ? 1 : -1
      peak = max(peak, count)
    }
    return peak
  }
}
