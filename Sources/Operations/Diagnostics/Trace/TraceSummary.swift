extension OperationTracer {
  /// What the figures of all operations come to that are followed and that no others run inside of.
  public struct Summary: Sendable, Hashable, CustomStringConvertible {
    /// How many have executed, or are executing.
    public let operations: Int
    /// From the beginning of the first to the end of the last, or until now.
    public let elapsed: Duration
    /// What they took, added up.
    public let busy: Duration
    /// How many executed at once, on average.
    public var parallelism: Double { elapsed > .zero ? busy / elapsed : 0 }
    /// How many executed at once when it was most.
    public let peak: Int
    /// Who was ready for the longest time before it began. Nil if nobody waited.
    public let longestWait: Wait?
    /// What decided how long it took, as far as that was dependencies. Nil as long as nothing has finished.
    public let criticalPath: CriticalPath?

    /// Time in which an operation was ready, and had not begun.
    public struct Wait: Sendable, Hashable {
      /// The operation's, or its type's if it has none.
      public let name: String
      /// From when it was ready to when it began.
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

  /// What the figures come to, as far as operations have come.
  public var summary: Summary {
    let (records, now) = (records, now)
    let intervals = records.compactMap { $0.isGroup ? nil : TraceInterval($0, now) }
    let start = intervals.map(\.start).min() ?? .zero
    let end = intervals.map(\.end).max() ?? .zero
    let waits = records.lazy.filter { !$0.isGroup }.compactMap { record in
      record.wait(in: records).map { Summary.Wait(name: record.name, duration: $0) }
    }
    return Summary(
      operations: intervals.count,
      elapsed: end - start,
      busy: intervals.reduce(.zero) { $0 + ($1.end - $1.start) },
      peak: TraceInterval.peak(of: intervals),
      longestWait: waits.filter { $0.duration > .zero }.max { $0.duration < $1.duration },
      criticalPath: OperationGraph(records).criticalPath
    )
  }
}

extension OperationTracer.Record {
  /// Since when nothing but a turn was waited for: it has to be in a queue, or the group around it to have begun, too.
  func wasReady(in records: [Self]) -> Duration? {
    guard let ready else { return nil }
    return max(ready, enqueued ?? ready, group.flatMap { records[$0].started } ?? ready)
  }

  /// How long it waited for its turn.
  fileprivate func wait(in records: [Self]) -> Duration? {
    guard let started, let ready = wasReady(in: records) else { return nil }
    return max(.zero, started - ready)
  }
}
