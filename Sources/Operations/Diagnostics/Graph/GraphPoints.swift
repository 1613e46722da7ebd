/// What waits for what in a graph: the ends of operations, and the beginnings of groups, for which their members wait.
///
/// A number below the count of nodes is the end of that node; those from there on are the beginnings.
struct GraphPoints {
  let order: WaitOrder
  /// The nodes of a circle, each once.
  let circle: [Int]?
  /// Of each node, where it begins: the same as its end if nothing is inside it.
  let beginnings: [Int]
  /// The node of each point.
  let nodes: [Int]
  let waits: [[Int]]

  init(_ graph: [OperationGraph.Node]) {
    var nodes = Array(graph.indices)
    var beginnings = nodes
    for node in graph {
      guard let group = node.group, beginnings[group] == group else { continue }
      beginnings[group] = nodes.count
      nodes.append(group)
    }
    var waits = [[Int]](repeating: [], count: nodes.count)
    for node in graph {
      let (beginning, end) = (beginnings[node.id], node.id)
      waits[beginning] += node.dependencies
      // The shortest way first: a circle is easier to read without members on its way.
      if beginning != end { waits[end].insert(beginning, at: 0) }
      if let group = node.group {
        waits[beginning].append(beginnings[group])
        waits[group].append(end)
      }
    }
    let order = WaitOrder(waits)
    circle = order.circles.first.map { GraphPoints.nodes(of: $0.map { nodes[$0] }) }
    (self.order, self.beginnings, self.nodes, self.waits) = (order, beginnings, nodes, waits)
  }

  /// The end and the beginning of a group follow each other: it is the same operation.
  private static func nodes(of circle: [Int]) -> [Int] {
    var result: [Int] = []
    for node in circle where result.last != node { result.append(node) }
    if result.count > 1, result.first == result.last { result.removeLast() }
    return result
  }
}
