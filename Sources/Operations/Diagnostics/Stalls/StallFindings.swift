/// The causes that keep the nodes of a graph of waits from finishing, found in O(n + e) without recursion.
///
/// A node that waits for several nodes takes the most severe of their causes. A node that needs one of several slots
/// takes the least severe.
struct StallFindings {
  struct Finding {
    let cause: StallReport.Cause
    let severity: Severity
    /// The wait that leads to the cause, or nil for a root or a node of a cycle.
    var wait: StallNode.Wait?
    /// The node that the cause describes.
    let explainer: Int
    /// The last node in the chain of waits.
    let root: Int
    /// The number of operations between this node and the explainer.
    var distance = 0
    /// The number of waits between this node and the root.
    let depth: Int
    /// The index of the cycle that the node is part of, or nil.
    var cycle: Int?
  }

  /// The severity of a cause: first how unlikely the wait is to end by itself, then how long it has lasted.
  struct Severity: Comparable {
    let rank: Int
    var elapsed = Duration.zero

    static func < (left: Self, right: Self) -> Bool { (left.rank, left.elapsed) < (right.rank, right.elapsed) }
  }

  let nodes: [StallNode]
  let cycles: [[Int]]
  private var findings: [Finding?]

  init(_ nodes: [StallNode]) {
    self.nodes = nodes
    findings = Array(repeating: nil, count: nodes.count)
    let order = WaitOrder(
      nodes.map { $0.waits.map(\.node) },
      needed: { nodes[$0].needed },
      rank: { (nodes[$0].obstacle ?? .ending).cause.rank }
    )
    cycles = order.cycles
    for node in order.order { findings[node] = finding(of: node) }
    for (index, cycle) in cycles.enumerated() {
      for (position, node) in cycle.enumerated() {
        // An operation that uses a slot or a key represents it.
        let isResource = nodes[node].operation == nil
        let representative = isResource ? cycle[(position + 1) % cycle.count] : node
        findings[node] = Finding(
          cause: .cycle,
          severity: .cycle,
          explainer: representative,
          root: representative,
          distance: isResource ? 1 : 0,
          depth: 0,
          cycle: index
        )
      }
    }
    // All remaining nodes wait for a node of a cycle, directly or indirectly.
    var toDo = cycles.flatMap(\.self)
    var done = 0
    while done < toDo.count {
      for dependent in order.dependents[toDo[done]] where findings[dependent] == nil {
        let wait = nodes[dependent].waits.first { $0.node == toDo[done] }
        findings[dependent] = wait.map { finding(of: dependent, through: $0) }
        toDo.append(dependent)
      }
      done += 1
    }
  }

  subscript(node: Int) -> Finding {
    guard let finding = findings[node] else {
      misuse("The stall report has no finding for node \(node). Report it as a defect of the package.")
    }
    return finding
  }

  /// Returns the node that represents a node in the report. For a group's finish that waits for the group's start, this
  /// is the start.
  func representative(for node: Int) -> Int {
    guard let wait = self[node].wait, wait.kind == .ownStart else { return node }
    return wait.node
  }

  private func finding(of node: Int) -> Finding {
    if let wait = decisiveWait(of: node) { return finding(of: node, through: wait) }
    let (cause, rank) = (nodes[node].obstacle ?? .ending).cause
    let severity = Severity(rank: rank, elapsed: nodes[node].elapsed ?? .zero)
    var depth = -1
    if case .operation = nodes[node].subject { depth = 0 }
    return Finding(cause: cause, severity: severity, explainer: node, root: node, depth: depth)
  }

  /// Returns the most severe of the waits that must end, or nil if there is none.
  ///
  /// Nodes receive their findings in order of severity. A node that needs only some of its waits receives its finding
  /// as soon as enough of them have one. Waits that have no finding yet, such as those in a cycle, do not count.
  private func decisiveWait(of node: Int) -> StallNode.Wait? {
    nodes[node].waits.filter { findings[$0.node] != nil }.max { left, right in
      let (left, right) = (self[left.node], self[right.node])
      return left.severity == right.severity ? left.distance > right.distance : left.severity < right.severity
    }
  }

  private func finding(of node: Int, through wait: StallNode.Wait) -> Finding {
    let next = self[wait.node]
    let own = ownCause(wait, next)
    let isStep = nodes[wait.node].operation != nil && wait.kind != .ownStart
    return Finding(
      cause: own ?? next.cause,
      severity: next.severity,
      wait: wait,
      explainer: own == nil ? next.explainer : node,
      // Slots and keys are no operations, so the operation that waits for them is the root.
      root: nodes[next.root].operation == nil ? node : next.root,
      distance: own == nil ? next.distance + (isStep ? 1 : 0) : 0,
      depth: next.depth + 1
    )
  }

  /// Returns the cause of the wait itself, or nil if the wait has the cause of the awaited node.
  private func ownCause(_ wait: StallNode.Wait, _ next: Finding) -> StallReport.Cause? {
    switch wait.kind {
    case .slot where next.wait == nil && next.cycle == nil: next.cause
    // The holder makes progress, so the cause is that it holds the slot or the key.
    case .slot where next.cause.isProgress: .saturated
    case .key where next.cause.isProgress: .exclusivity
    case .dependency, .member, .ownStart, .groupStart, .slot, .key, .user: nil
    }
  }
}

extension StallFindings.Severity {
  fileprivate static let cycle = Self(rank: 10)
}

extension StallReport.Cause {
  fileprivate var isProgress: Bool { [.executing, .condition, .backingOff, .transitioning].contains(self) }
}

extension StallNode.Obstacle {
  /// The cause, and its rank of severity.
  fileprivate var cause: (StallReport.Cause, rank: Int) {
    switch self {
    case .notEnqueued(isCertain: true): (.notEnqueued, 9)
    case .suspended, .hasNoSlots, .waitsForMembers(isSuspended: true): (.suspended, 8)
    case .notReady: (.notReady, 7)
    case .notEnqueued(isCertain: false): (.notEnqueued, 6)
    case .condition: (.condition, 3)
    case .executing, .waitsForMembers(isSuspended: false): (.executing, 3)
    case .backingOff: (.backingOff, 2)
    case .throttled: (.exclusivity, 2)
    case .starting: (.transitioning, 1)
    case .ending: (.transitioning, 0)
    }
  }
}
