/// What there is to draw of a graph, whatever language it is drawn in.
///
/// Groups are boxes with their members inside. An arrow between a box and something inside it cannot be drawn, and yet
/// it is what one would look for, for it is part of a circle: so the group gets a *stand-in* beside its box.
struct GraphDrawing {
  static let circleColor = "#dc2626"

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
    /// One of those that make the circle.
    let isInCircle: Bool
  }

  /// From outside to inside, in the order of the nodes.
  private(set) var steps: [Step] = []
  private(set) var arrows: [Arrow] = []
  /// A node inside each box that is none itself, the first; itself for one that is no box.
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

    // Where the tour comes to each node, and where it leaves it: what is inside comes in between.
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
    let circle = graph.circle ?? []
    // Each waits for the next.
    let inCircle = Set(circle.indices.map { [circle[$0], circle[($0 + 1) % circle.count]] })
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
            isInCircle: inCircle.contains([node.id, dependency])
          )
        )
      }
    }
    steps += standIns.sorted().map { .standIn($0) }
  }

  func isBox(_ node: Int) -> Bool { isBox[node] }
}

extension OperationGraph.Node.State {
  /// What it is filled with, and its border.
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
