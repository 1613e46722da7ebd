/// A post of the feed, as it is shown.
struct Row: Sendable {
  let text: String
}
