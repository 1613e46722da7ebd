import Operations
import OperationsTestSupport

/// What happened to the operations, in order.
final class SoakLog: Sendable {
  enum Entry: Hashable, Sendable {
    case started(Int)
    /// Its work has been done, of a plain operation as well.
    case ran(Int)
    case attempted(Int, attempt: Int)
    case cancelled(Int)
    case finished(Int)
    /// A group has been told of the end of a member.
    case accounted(Int)
    /// A value was accepted as the operation's.
    case counted(Int)
    /// A newcomer has been added to its group.
    case added(Int)
  }

  private let journal = Journal<Entry>()
  private let found = Locked<[String]>([])

  var entries: [Entry] { journal.entries }

  /// What was seen to be wrong while it happened.
  var violations: [String] { found.withLock { $0 } }

  func write(_ entry: Entry) { journal.write(entry) }

  func report(_ violation: String) { found.withLock { $0.append(violation) } }
}
