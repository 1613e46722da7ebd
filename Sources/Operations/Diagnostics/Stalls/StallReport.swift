/// The reasons why operations have not finished.
///
/// Create a report with `OperationQueue.stallReport(alsoIn:)` or ``AsyncOperation/stallReport(alsoIn:)``.
///
/// ```
/// 3 operations have not finished, in the queue “sync” or where it waits:
/// “login” was never added to a queue or a group.
/// “upload” waits for “login”, which was never added to a queue or a group.
/// “report” waits for “upload”, which waits for “login”, which was never added to a queue or a group.
/// ```
///
/// A report is a value. Print it, or encode it and attach it to a bug report.
public struct StallReport: Sendable, Hashable, Codable {
  /// The queue, the group or the operation that the report describes, as it appears in a sentence.
  public let subject: String
  /// An entry for each operation that has not finished.
  ///
  /// The entries cover the operations of the queue or the group, of groups in it, and everything that these wait for
  /// elsewhere. The ``roots`` come first, then the operations that wait for them, and so on.
  public let entries: [Entry]

  /// The entries of the operations that wait for no other operation, or for themselves in a cycle.
  public var roots: [Entry] { entries.filter(\.isRoot) }
}

extension StallReport: CustomStringConvertible {
  /// The largest number of entries in the description. ``entries`` has all of them.
  private static let longestText = 100

  public var description: String {
    if entries.isEmpty { return "Nothing is left to be done in \(subject)." }
    let sentences = entries.prefix(Self.longestText).map(\.description).joined(separator: "\n")
    let rest = entries.count - Self.longestText
    let header = entries.count == 1 ? "1 operation has" : "\(entries.count) operations have"
    return "\(header) not finished, in \(subject) or where it waits:\n\(sentences)"
      + (rest > 0 ? "\n… and \(rest) more." : "")
  }
}
