/// The elements of a drawn graph, independent of the graph language.
///
/// A group is a box around its members. Neither Mermaid nor DOT can draw an arrow between a box and a node inside it,
/// but such an arrow is always part of a cycle and must be visible. In that case the group also gets a *stand-in*
/// node beside its box.
struct GraphDrawing {
  static let cycleColor = "#dc2626"

  enum Step {
    case open(Int)
    case node(Int)
    case close(Int)
    case standIn(Int)
  }

  enum End: Hashable {
    /// A node, or the box of a group.
    case node(Int)
    case standIn(Int)
  }

  struct Arrow {
    let from: End
    let to: End
    let isInCycle: Bool
  }

  /// The boxes and nodes in nesting order, and in the order of the graph's nodes on each level.
  private(set) var steps: [Step] = []
  private(set) var arrows: [Arrow] = []
  /// For each box the first and the last node inside it that is not a box; for each node the node itself.
  private(set) var firstInside: [Int]
  private(set) var lastInside: [Int]
  private let isBox: [Bool]

  init(_ graph: OperationGraph) {
    let nodes = graph.nodes
    var members = [[Int]](repeating: [], count: nodes.count)
    for node in nodes { if let group = node.group { members[group].append(node.id) } }
    isBox = members.map { !$0.isEmpty }
    firstInside = Array(nodes.indices)
    lastInside = firstInside

    // The positions at which a depth-first tour enters and leaves each node. The nodes inside a box lie in between.
    var (entered, left) = (firstInside, firstInside)
    var tour: [Int] = []
    var toDo: [Step] = nodes.reversed().filter { $0.group == nil }.map { .open($0.id) }
    while let step = toDo.popLast() {
      guard case .open(let node) = step else {
        if case .close(let node) = step { left[node] = tour.count }
        steps.append(step)
        continue
      }
      entered[node] = tour.count
      tour.append(node)
      left[node] = tour.count
      steps.append(isBox[node] ? step : .node(node))
      if isBox[node] { toDo += [.close(node)] + members[node].reversed().map { .open($0) } }
    }
    for node in tour.reversed() where isBox[node] {
      firstInside[node] = firstInside[members[node][0]]
      lastInside[node] = lastInside[members[node][members[node].count - 1]]
    }

    func isInside(_ node: Int, _ box: Int) -> Bool { entered[box] < entered[node] && entered[node] < left[box] }
    let cycle = graph.points.cycle ?? []
    let cycleWaits = Set(cycle.indices.map { [cycle[$0], cycle[($0 + 1) % cycle.count]] })
    var standIns: Set<Int> = []
    for node in nodes {
      for dependency in node.dependencies {
        let (from, to) = (isInside(node.id, dependency), isInside(dependency, node.id))
        if from { standIns.insert(dependency) }
        if to { standIns.insert(node.id) }
        arrows.append(
          Arrow(
            from: from ? .standIn(dependency) : .node(dependency),
            to: to ? .standIn(node.id) : .node(node.id),
            isInCycle: cycleWaits.contains([node.id, dependency])
          )
        )
      }
    }
    steps += standIns.sorted().map { .standIn($0) }
  }

  func isBox(_ node: Int) -> Bool { isBox[node] }
}

extension OperationGraph.Node.State {
  /// The colors of the background and the border.
  var colors: (fill: String, line: String) {
    switch self {
    case .pending: ("#f3f4f6", "#6b7280")
    case .executing: ("#dbeafe", "#2563eb")
    case .finished: ("#dcfce7", "#16a34a")
    case .failed: ("#fee2e2", "#dc2626")
    case .cancelled: ("#e5e7eb", "#9ca3af")
    }
  }
}
