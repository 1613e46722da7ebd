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
    // Each operation is looked at at another moment. What has changed meanwhile may look like a circle, once.
    for _ in 0..<3 {
      let (search, nodes) = attempt(from: root, steps: limit)
      guard case .found = search else { return search }
      let edges = zip(nodes, nodes.dropFirst() + nodes.prefix(1))
      if edges.allSatisfy({ node, next in node.next.contains(next) }) { return search }
    }
    return .unfinished
  }

  private static func attempt(from root: Operation, steps limit: Int) -> (Search, nodes: [WaitNode]) {
    let root = WaitNode(root)
    var path: [(node: WaitNode, next: ArraySlice<WaitNode>)] = [(root, root.next[...])]
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
        let circle = path.map(\.node).drop { $0 != next }
        return (.found(DependencyCycle(operations: circle.map(\.operation))), Array(circle))
      case false?: continue
      case nil:
        let waitedFor = next.operation.isFinished ? [] : next.next
        if waitedFor.isEmpty { continue }
        isOnPath[next] = true
        path.append((next, waitedFor[...]))
      }
    }
    return (.none, [])
  }
}
