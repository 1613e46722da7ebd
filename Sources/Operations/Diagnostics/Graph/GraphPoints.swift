/// The points in time of a graph and their order.
///
/// The points are the finish of every operation, and the start of every group, which its members wait for. A point
/// below the number of nodes is the finish of that node. The points after those are the starts of groups.
struct GraphPoints {
  let order: WaitOrder
  /// The nodes of a cycle, each once.
  let cycle: [Int]?
  /// The start of each node, which for a node without members is also its finish.
  let starts: [Int]
  /// The node of each point.
  let nodes: [Int]
  let waits: [[Int]]

  init(_ graph: [OperationGraph.Node]) {
    var nodes = Array(graph.indices)
    var starts = nodes
    for node in graph {
      guard let group = node.group, starts[group] == group else { continue }
      starts[group] = nodes.count
      nodes.append(group)
    }
    var waits = [[Int]](repeating: [], count: nodes.count)
    for node in graph {
      let (start, finish) = (starts[node.id], node.id)
      waits[start] += node.dependencies
      // The start comes first, so that a cycle takes the shortest path and contains no members on the way.
      if start != finish { waits[finish].insert(start, at: 0) }
      if let group = node.group {
        waits[start].append(starts[group])
        waits[group].append(finish)
      }
    }
    let order = WaitOrder(waits)
    cycle = order.cycles.first.map { GraphPoints.nodes(of: $0.map { nodes[$0] }) }
    (self.order, self.starts, self.nodes, self.waits) = (order, starts, nodes, waits)
  }

  /// Returns the nodes of a cycle of points. The consecutive start and finish of a group become one node.
  private static func nodes(of cycle: [Int]) -> [Int] {
    var result: [Int] = []
    for node in cycle where result.last != node { result.append(node) }
    if result.count > 1, result.first == result.last { result.removeLast() }
    return result
  }
}
