/// A change to a group's progress, to be carried out without the engine's lock held.
struct ProgressChange {
  var total = 0
  var completed = 0
  /// Members that report their own units, and what they count.
  var children: [(operation: AsyncOperation, weight: Int)] = []
  /// The group has finished.
  var isOver = false
}
