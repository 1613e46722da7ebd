public import Foundation

/// The reasons why operations have not finished.
///
/// Create a report with ``OperationContainer/stallReport(alsoIn:)`` or ``AsyncOperation/stallReport(alsoIn:)``.
///
/// ```
/// 3 operations have not finished, in the queue “sync” or elsewhere:
/// “login” was never added to a queue or a group.
/// “upload” waits for “login”, which was never added to a queue or a group.
/// “report” waits for “upload”; at the root, “login” was never added to a queue or a group.
/// ```
///
/// A report is a value. Print it, or encode it and attach it to a bug report.
public struct StallReport: Sendable, Hashable, Codable, CustomStringConvertible {
  /// The queue, the group or the operation that the report describes, as it appears in a sentence.
  public let subject: String
  /// An entry for each operation that has not finished.
  ///
  /// The entries cover the operations of the queue or the group, the members of groups in it, and all operations
  /// elsewhere that these wait for. The ``roots`` come first, then the operations that wait for them, and so on.
  public let entries: [Entry]

  /// The entries of the operations at which chains of waits end, even if they wait for a task, or that are part of a cycle.
  public var roots: [Entry] { entries.filter { $0.root == nil } }

  private static let longestText = 100

  public var description: String {
    if entries.isEmpty { return "Nothing is left to be done in \(subject)." }
    let sentences = entries.prefix(Self.longestText).map(\.description).joined(separator: "\n")
    let rest = entries.count - Self.longestText
    let header = entries.count == 1 ? "1 operation has" : "\(entries.count) operations have"
    return "\(header) not finished, in \(subject) or elsewhere:\n\(sentences)"
      + (rest > 0 ? "\n… and \(rest) more." : "")
  }

  /// The reason why one operation has not finished.
  public struct Entry: Sendable, Hashable, Codable, CustomStringConvertible {
    /// The name of the operation.
    public let operation: String
    /// The name of the operation's queue or group, if known.
    public let place: String?
    /// What keeps the operation from finishing.
    public let cause: Cause
    /// The names of the operations that this one waits for directly, such as dependencies, members, operations that
    /// hold its keys, and operations that use the slots.
    public let waitsFor: [String]
    /// The name of the last operation in the chain of waits, or nil if this operation is the last.
    public let root: String?
    /// The time for which the operation has been executing or evaluating its conditions.
    ///
    /// The time comes from the system's clock and is exact to a few milliseconds. It is nil for an operation that has
    /// not started, and for a plain Foundation operation outside of a group.
    public var elapsed: Duration? {
      // An `Int64` can count the nanoseconds of this many seconds.
      seconds.flatMap { $0.magnitude <= 1e9 ? Duration.nanoseconds(Int64(($0 * 1e9).rounded())) : nil }
    }
    /// A time that was measured in whole nanoseconds, as it is encoded.
    let seconds: Double?
    /// A sentence that explains why the operation has not finished.
    public let description: String

    private enum CodingKeys: String, CodingKey {
      case operation, place, cause, waitsFor, root, description
      case seconds = "elapsed"
    }
  }

  /// What keeps an operation from finishing. A structure, so that later versions can add causes.
  public struct Cause: RawRepresentable, Sendable, Hashable, Codable, CustomStringConvertible {
    /// Operations or tasks wait for each other in a cycle.
    public static let cycle = Cause(rawValue: "cycle")
    /// The operation was never added to a queue or a group, as far as the report can detect.
    public static let notEnqueued = Cause(rawValue: "notEnqueued")
    /// The queue or the group is suspended, or its `maxConcurrentOperationCount` is 0.
    public static let suspended = Cause(rawValue: "suspended")
    /// Foundation does not consider the operation ready, although all of its dependencies have finished.
    public static let notReady = Cause(rawValue: "notReady")
    /// Another operation holds the key, or comes first in the wait queue of the key.
    public static let exclusivity = Cause(rawValue: "exclusivity")
    /// All slots of the queue or the group are in use.
    public static let saturated = Cause(rawValue: "saturated")
    /// The operation evaluates a condition.
    public static let condition = Cause(rawValue: "condition")
    /// The operation is executing.
    public static let executing = Cause(rawValue: "executing")
    /// The operation waits for its next attempt or iteration.
    public static let backingOff = Cause(rawValue: "backingOff")
    /// The operation is about to start or to finish.
    public static let transitioning = Cause(rawValue: "transitioning")

    /// The name of the cause, which is also its JSON encoding.
    public let rawValue: String
    public var description: String { rawValue }

    /// Creates a cause from its name. The name may come from a later version of the package.
    public init(rawValue: String) { self.rawValue = rawValue }
  }
}

extension OperationContainer {
  /// Returns the reasons why operations in the queue or the group have not finished.
  ///
  /// The report explains each operation in one sentence. It follows every wait: for dependencies in any queue or group
  /// or in none, for members, for what holds a key or uses a slot, and for what the tasks of operations await.
  ///
  /// ## Threads
  ///
  /// The method changes nothing. You can call it at any time from any thread, even while the queue is executing
  /// operations. Each operation is read at a slightly different moment of the call.
  ///
  /// ## Operations that Foundation added
  ///
  /// An operation that Foundation's own method added to a queue, such as a plain one, does not report the queue. The
  /// method finds it in this queue, the main queue, `queues`, each queue that it reaches through another operation, and
  /// the groups in these. In any other queue, it counts as ``StallReport/Cause/notEnqueued`` until it starts. The start
  /// time of a plain operation is known only in a group. Never rename one during the call: on Linux its name has no lock.
  ///
  /// The report shows no barrier blocks, and no waits that block a thread.
  ///
  /// - Parameter queues: More queues to search.
  /// - Complexity: O(n + e) for n operations with e waits.
  public func stallReport(alsoIn queues: [OperationQueue] = []) -> StallReport {
    switch place {
    case .group(let group): return group.stallReport(alsoIn: queues)
    case .queue(let queue):
      let subject = place.name == nil ? "the queue" : place.description
      return StallReport(of: operations, in: subject, lookingInto: [queue] + queues)
    }
  }
}

extension AsyncOperation {
  /// Returns the reasons why the operation has not finished.
  ///
  /// The report has an entry for the operation, for each member of a group, and for each operation that these wait for.
  /// The operation need not be in a queue. If it was never added to a queue or a group, awaiting it never returns, and
  /// the report states this cause. For details, see ``OperationContainer/stallReport(alsoIn:)``.
  ///
  /// - Parameter queues: More queues to search.
  public final func stallReport(alsoIn queues: [OperationQueue] = []) -> StallReport {
    let subject = (self as? GroupOperation).map { WaitPlace.group($0).description } ?? "the operation \(shownName)"
    return StallReport(of: [self], in: subject, lookingInto: queues)
  }
}

extension StallReport {
  init(of operations: [Operation], in subject: String, lookingInto queues: [OperationQueue]) {
    let read = { StallFindings(WaitSnapshot(of: operations, lookingInto: queues + [.main])) }
    var findings = read()
    // Each node is read at a different moment, so a cycle is real only if none of its nodes has changed. If cycles have
    // changed even after the last attempt, their operations are reported as about to start.
    for attempt in 1... {
      let current = findings.snapshot.current(of: findings.cycles.flatMap(\.self))
      let changed = findings.cycles.filter { !$0.allSatisfy(current.contains) }.flatMap(\.self)
      if changed.isEmpty { break }
      findings = attempt < 3 ? read() : StallFindings(findings.snapshot.withoutWaits(of: changed))
    }
    self.init(subject: subject, entries: findings.entries())
  }
}
