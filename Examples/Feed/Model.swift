/// A post in the feed.
struct Row: Sendable {
  let text: String
}

/// The rows of the feed at one moment. Because it never changes, any thread can read it.
struct Snapshot: Sendable {
  let version: Int
  let rows: [Row]
}

/// The posts of the feed. Each change adds a post, or removes the oldest posts when there are too many.
struct Model {
  private static let maxCount = 60
  private static let minCount = 20

  /// The number of changes so far.
  private(set) var version = 0
  /// The posts, newest first.
  private(set) var rows: [Row] = []

  mutating func change() {
    version += 1
    if rows.count == Model.maxCount {
      rows.removeLast(Model.maxCount - Model.minCount)
    } else {
      rows.insert(Row(text: "post \(version)"), at: 0)
    }
  }
}
