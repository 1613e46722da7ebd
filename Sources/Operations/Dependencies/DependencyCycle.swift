import Foundation

/// Operations that wait for each other in a circle.
struct DependencyCycle {
  /// Each waits for the next, and the last for the first.
  let operations: [Operation]

  /// `a` waits for `b`, …, in one sentence.
  var description: String {
    (operations + operations.prefix(1)).map { "“\($0.displayName)”" }.joined(separator: " waits for ")
  }

  enum Search {
    case found(DependencyCycle)
    case none
    /// There was more to look at than allowed.
    case unfinished
  }

  /// Looks for a circle among everything that `root` waits for, directly or not; a group waits for its members.
  ///
  /// O(n + e), without recursion. Finished operations are not looked at: they wait for nothing.
  static func search(from root: Operation, steps limit: Int = .max) -> Search {
    var path: [(operation: Operation, next: ArraySlice<Operation>)] = [(root, root.waitedFor[...])]
    var isOnPath: [ObjectIdentifier: Bool] = [ObjectIdentifier(root): true]
    var steps = 0
    while let top = path.indices.last {
      guard let next = path[top].next.popFirst() else {
        isOnPath[ObjectIdentifier(path[top].operation)] = false
        path.removeLast()
        continue
      }
      steps += 1
      if steps > limit { return .unfinished }
      switch isOnPath[ObjectIdentifier(next)] {
      case true?:
        let circle = path.map(\.operation).drop { $0 !== next }
        return .found(DependencyCycle(operations: Array(circle)))
      case false?: continue
      case nil:
        let waitedFor = next.isFinished ? [] : next.waitedFor
        if waitedFor.isEmpty { continue }
        isOnPath[ObjectIdentifier(next)] = true
        path.append((next, waitedFor[...]))
      }
    }
    return .none
  }
}
