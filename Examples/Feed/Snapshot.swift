/// What there is to show at one moment. It never changes, so that it can be looked at on any thread.
struct Snapshot: Sendable {
  let version: Int
  let rows: [Row]
}
