import Foundation

/// Operations that wait for each other in a circle.
struct DependencyCycle {
  /// Each waits for the next, and the last for the first.
  let operations: [Operation]

  /// `a` waits for `b`, …, in one sentence.
  var description: String {
    (operations + operations.prefix(1)).map(\.quotedName).joined(separator: " waits for ")
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
    // Each operation is looked at at another moment, and what changes meanwhile may look like a circle. It is one if
    // all of its operations still wait as they did when the last of them was looked at.
    for _ in 0..<3 {
      let (search, circle) = attempt(from: root, steps: limit)
      guard case .found = search else { return search }
      let isStill = circle.indices.allSatisfy { index in
        let wait = circle[index].node.wait
        return wait.edition == circle[index].edition && wait.next.contains(circle[(index + 1) % circle.count].node)
      }
      if isStill { return search }
    }
    return .unfinished
  }

  private typealias Visit = (node: WaitNode, edition: Int32, next: ArraySlice<WaitNode>)

  private static func attempt(from root: Operation, steps limit: Int) -> (Search, circle: [Visit]) {
    let root = WaitNode(root)
    let start = root.wait
    var path: [Visit] = [(root, start.edition, start.next[...])]
    var isOnPath = [root: true]
    var steps = 0
    while let top = path.indices.last {
      guard let next = path[top].next.popFirst() else {
        isOnPath[path[top].node] = false
        path.removeLast()
        continue
      }
      steps += 1
      if steps > limit { return (.unfinished, []) }
      switch isOnPath[next] {
      case true?:
        let circle = Array(path.drop { $0.node != next })
        return (.found(DependencyCycle(operations: circle.map(\.node.operation))), circle)
      case false?: continue
      case nil:
        let wait = next.operation.isFinished ? WaitNode.Wait(next: []) : next.wait
        if wait.next.isEmpty { continue }
        isOnPath[next] = true
        path.append((next, wait.edition, wait.next[...]))
      }
    }
    return (.none, [])
  }
}
