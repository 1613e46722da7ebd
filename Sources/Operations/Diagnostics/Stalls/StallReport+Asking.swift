public import Foundation

extension OperationQueue {
  /// Why the operations of the queue that have not finished do not get on: for each one what is at the bottom of it, in
  /// a sentence with names.
  ///
  /// ```swift
  /// print(queue.stallReport())
  /// ```
  ///
  /// It follows what they wait for, wherever that is: operations they depend on, in other queues and groups or in none;
  /// members; keys and who has them; slots and who takes them. Asking changes nothing, and may be done at any moment
  /// from any thread, of a queue that is at work as well: what is said of an operation was so at some moment of the
  /// call.
  ///
  /// **Plain Foundation operations** do not tell where they are. Those of this queue are seen, of the main queue, of
  /// queues that an ``AsyncOperation`` on the way was added to, and of groups in these; name others in `queues`. Nor do
  /// they tell since when they execute. (They must not be renamed meanwhile: on Linux their name has no lock.) Barrier
  /// blocks cannot be seen at all, nor what somebody awaits in the middle of an operation.
  ///
  /// O(n + e) for n operations and e waits.
  ///
  /// - Parameter queues: Where else to look for operations that do not tell where they are.
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
  /// How often to look again when what looks like a circle has moved meanwhile.
  private static let attempts = 3

  fileprivate init(of operations: [Operation], in subject: String, lookingInto queues: [OperationQueue]) {
    var findings = StallFindings(StallWalk(from: operations, lookingInto: queues).nodes)
    for _ in 1..<Self.attempts where !findings.movedCircles.isEmpty {
      findings = StallFindings(StallWalk(from: operations, lookingInto: queues).nodes)
    }
    while true {
      let moved = findings.movedCircles
      if moved.isEmpty { break }
      var nodes = findings.nodes
      for node in moved.joined() { (nodes[node].waits, nodes[node].obstacle) = ([], .starting(nil)) }
      findings = StallFindings(nodes)
    }
    self.init(subject: subject, entries: StallWords(findings).entries)
  }
}

extension StallFindings {
  /// Each was looked at at another moment: it is a circle only if all of them still wait as they did.
  fileprivate var movedCircles: [[Int]] {
    cycles.filter { cycle in
      cycle.contains { node in
        guard let operation = nodes[node].operation else { return false }
        return StallNode.Stamp(of: operation) != nodes[node].stamp
      }
    }
  }
}
