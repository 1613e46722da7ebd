/// What an item of a plan fails with.
struct SoakError: Error, Hashable, CustomStringConvertible {
  let item: Int
  var description: String { "failure of \(item)" }
}
