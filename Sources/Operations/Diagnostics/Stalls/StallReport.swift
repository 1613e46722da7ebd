/// Why operations that have not finished do not get on: see `OperationQueue.stallReport(alsoIn:)` and
/// ``AsyncOperation/stallReport(alsoIn:)``.
///
/// ```
/// 3 operations have not finished, in the queue “sync” or where it waits:
/// “login” was never added to a queue or a group.
/// “upload” waits for “login”, which was never added to a queue or a group.
/// “report” waits for “upload”, which waits for “login”, which was never added to a queue or a group.
/// ```
///
/// A value, to be printed, or encoded and sent along with a complaint.
public struct StallReport: Sendable, Hashable, Codable {
  /// The queue or the group that was asked, as sentences speak of it.
  public let subject: String
  /// An entry for each operation that has not finished: those of the queue or the group, of groups in it, and whatever
  /// they wait for elsewhere. Those at the bottom of it first, then those that wait for these, and so on.
  public let entries: [Entry]

  /// The entries at the bottom of it: they wait for no other operation, or for themselves in a circle.
  public var roots: [Entry] { entries.filter(\.isRoot) }
}

extension StallReport: CustomStringConvertible {
  /// How many entries the text has at most: ``entries`` has all of them.
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
