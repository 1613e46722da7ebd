/// The posts that there are: more and more, and now and then the oldest go.
struct Model {
  private static let most = 60
  private static let fewest = 20

  /// How often it has been changed.
  private(set) var version = 0
  /// The newest first.
  private(set) var rows: [Row] = []

  mutating func change() {
    version += 1
    if rows.count == Model.most {
      rows.removeLast(Model.most - Model.fewest)
    } else {
      rows.insert(Row(text: "post \(version)"), at: 0)
    }
  }
}
