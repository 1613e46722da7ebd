extension OperationTracer {
  /// The totals over all traced operations except groups.
  public struct Summary: Sendable, Hashable, CustomStringConvertible {
    /// The number of operations that have executed or are executing.
    public let operations: Int
    /// The time from the first start to the last finish, or until now.
    public let elapsed: Duration
    /// The sum of the execution times.
    public let busy: Duration
    /// The average number of operations that executed at once.
    public var parallelism: Double { elapsed > .zero ? busy / elapsed : 0 }
    /// The largest number of operations that executed at once.
    public let peak: Int
    /// The longest time for which an operation was ready and had not started, or nil if no operation waited.
    public let longestWait: Wait?
    /// The longest chain of dependencies, or nil if no operation has finished.
    public let criticalPath: CriticalPath?

    /// The wait of an operation that was ready and had not started.
    public struct Wait: Sendable, Hashable {
      /// The name of the operation, or of its type if the operation has no name.
      public let name: String
      /// The length of the wait.
      public let duration: Duration
    }

    public var description: String {
      let average = (parallelism * 100).rounded() / 100
      var text = "\(operations) \(operations == 1 ? "operation" : "operations") in \(elapsed.reading), "
      text += "\(average) at once on average, \(peak) at most."
      if let criticalPath, !criticalPath.names.isEmpty { text += "\nCritical path by dependencies, \(criticalPath)." }
      if let longestWait {
        text += "\nLongest wait for a turn, \(longestWait.duration.reading): \(longestWait.name.brief)."
      }
      return text
    }
  }

  /// The totals at this moment.
  public var summary: Summary {
    let (records, now) = (records, now)
    let intervals = TraceIntervals(records.filter { !$0.isGroup }, now)
    let start = intervals.values.map(\.lowerBound).min() ?? .zero
    let end = intervals.values.map(\.upperBound).max() ?? .zero
    let waits = records.lazy.filter { !$0.isGroup }.compactMap { record in
      record.wait(in: records).map { Summary.Wait(name: record.name, duration: $0) }
    }
    return Summary(
      operations: intervals.count,
      elapsed: end - start,
      busy: intervals.values.reduce(.zero) { $0.adding($1.upperBound - $1.lowerBound) },
      peak: intervals.peak,
      longestWait: waits.max { $0.duration < $1.duration },
      criticalPath: OperationGraph(records).criticalPath
    )
  }
}

extension OperationTracer.Record {
  /// Returns when the operation began to wait for its keys, and then only for a slot. Both are `start` at the latest.
  func waits(until start: Duration, in records: [Self]) -> (forKeys: Duration, forSlot: Duration) {
    let groupStart = group.flatMap { records[$0].started }
    let forSlot = ready.map { min(max($0, enqueued ?? $0, groupStart ?? $0), start) } ?? start
    return (min(requestedKeys ?? forSlot, forSlot), forSlot)
  }

  /// Returns the time for which the operation waited only for a slot, or nil if it did not wait.
  func wait(in records: [Self]) -> Duration? {
    guard let started else { return nil }
    let ready = waits(until: started, in: records).forSlot
    return ready < started ? started - ready : nil
  }
}
