public import Foundation

extension OperationQueue {
  /// Returns the reasons why operations in the queue have not finished.
  ///
  /// ```swift
  /// print(queue.stallReport())
  /// ```
  ///
  /// The report explains each operation in one sentence with names. It follows what the operations wait for, wherever
  /// that is: dependencies in other queues and groups or in none, members, keys and the operations that hold them,
  /// and slots and the operations that use them.
  ///
  /// ## Threads
  ///
  /// The method changes nothing. It can be called at any time from any thread, even while the queue is executing
  /// operations. Each operation is read at a slightly different moment of the call.
  ///
  /// ## Plain Foundation operations
  ///
  /// A plain Foundation operation does not report its queue. The method finds those in this queue, in the main queue,
  /// in each queue that it reaches through an ``AsyncOperation``, and in the groups in these queues. Pass any other
  /// queues in `queues`. The time at which such an operation started to execute is unknown. Do not rename one during
  /// the call, because on Linux its name has no lock.
  ///
  /// Barrier blocks are not visible. The report also cannot see what an operation awaits while it executes.
  ///
  /// - Parameter queues: More queues to search for plain Foundation operations, whose queue is unknown.
  /// - Complexity: O(n + e) for n operations with e waits.
  public func stallReport(alsoIn queues: [OperationQueue] = []) -> StallReport {
    let place = StallPlace.queue(self)
    let subject = place.name == nil ? "the queue" : place.description
    return StallReport(of: operations, in: subject, lookingInto: [self] + queues)
  }
}

extension AsyncOperation {
  /// Returns the reasons why the operation has not finished.
  ///
  /// The report has an entry for the operation, for each member of a group, and for everything they wait for. The
  /// operation need not be in a queue: awaiting an operation that was never added to one never returns, and the report
  /// says so. For the rest see `OperationQueue.stallReport(alsoIn:)`.
  ///
  /// - Parameter queues: More queues to search for plain Foundation operations, whose queue is unknown.
  public final func stallReport(alsoIn queues: [OperationQueue] = []) -> StallReport {
    let subject = (self as? GroupOperation).map { StallPlace.group($0).description } ?? "the operation \(shownName)"
    return StallReport(of: [self], in: subject, lookingInto: queues)
  }
}

extension StallReport {
  /// The largest number of times that the waits are read. They are read again if an apparent cycle has changed
  /// meanwhile.
  private static let attempts = 3

  fileprivate init(of operations: [Operation], in subject: String, lookingInto queues: [OperationQueue]) {
    var findings = StallFindings(StallWalk(from: operations, lookingInto: queues).nodes)
    for _ in 1..<Self.attempts where !findings.movedCycles.isEmpty {
      findings = StallFindings(StallWalk(from: operations, lookingInto: queues).nodes)
    }
    while true {
      let moved = findings.movedCycles
      if moved.isEmpty { break }
      var nodes = findings.nodes
      for node in moved.joined() { (nodes[node].waits, nodes[node].obstacle) = ([], .starting(nil)) }
      findings = StallFindings(nodes)
    }
    self.init(subject: subject, entries: StallDescription(findings).entries)
  }
}

extension StallFindings {
  /// The apparent cycles that have changed since they were read.
  ///
  /// Each operation is read at a different moment, so a cycle is real only if all of its operations still wait as
  /// before.
  fileprivate var movedCycles: [[Int]] {
    cycles.filter { cycle in
      cycle.contains { node in
        guard let operation = nodes[node].operation else { return false }
        return StallNode.Stamp(of: operation) != nodes[node].stamp
      }
    }
  }
}
