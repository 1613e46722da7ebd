/// The causes that keep the nodes of a graph of waits from finishing, in O(n + e) without recursion. A node that waits
/// for several nodes takes the most severe cause, and one that needs one of several slots the least severe.
struct StallFindings {
  struct Finding {
    let cause: StallReport.Cause
    /// The last node on the way to the cause, if that is no cycle. Its reason and its time tell how severe the cause is.
    let end: Int
    /// The wait that leads to the cause or to the next node of the cycle. Nil for a root.
    var wait: WaitSnapshot.Wait?
    let explainer: Int
    let root: Int
    /// The number of operations between this node and the root.
    let depth: Int
    var cycle: (index: Int, position: Int)?
  }

  let snapshot: WaitSnapshot
  let reasons: [StallReason]
  let cycles: [[Int]]
  /// For each cycle that a sentence has told, the node of the sentence.
  var told: [Int: Int] = [:]
  private var findings: [Finding?]

  var nodes: [WaitSnapshot.Node] { snapshot.nodes }

  init(_ snapshot: WaitSnapshot) {
    self.snapshot = snapshot
    let nodes = snapshot.nodes
    let reasons = nodes.indices.map { nodes[$0].explainsItself ? snapshot.reason(of: $0) : .ending }
    self.reasons = reasons
    findings = Array(repeating: nil, count: nodes.count)
    let order = snapshot.order { reasons[$0].rank }
    cycles = order.cycles
    for node in order.order { findings[node] = finding(of: node) }
    for (index, cycle) in cycles.enumerated() {
      for (position, node) in cycle.enumerated() {
        let next = cycle[(position + 1) % cycle.count]
        // An operation that uses a slot or a key represents it.
        let user = nodes[node].isResource ? next : node
        findings[node] = Finding(
          cause: .cycle,
          end: node,
          wait: nodes[node].waits.first { $0.node == next },
          explainer: user,
          root: user,
          depth: user == node ? 0 : 1,
          cycle: (index, position)
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

  /// The start represents a group's finish that waits for it.
  func representative(for node: Int) -> Int {
    guard self[node].cycle == nil, let wait = self[node].wait, wait.kind == .ownStart else { return node }
    return wait.node
  }

  private func finding(of node: Int) -> Finding {
    // Nodes receive their findings in order of rank, and a node that needs only some of its waits as soon as enough of
    // them have one. Waits without a finding, such as those in a cycle, do not count.
    let decisive = nodes[node].waits.filter { findings[$0.node] != nil }.max { severity(of: $0) < severity(of: $1) }
    if let decisive, !nodes[node].explainsItself { return finding(of: node, through: decisive) }
    return Finding(cause: reasons[node].cause, end: node, explainer: node, root: node, depth: 0)
  }

  /// Of causes of one rank, the one that has lasted longer is more severe, and then the nearer one.
  private func severity(of wait: WaitSnapshot.Wait) -> (rank: Int, elapsed: Duration, nearness: Int) {
    let finding = self[wait.node]
    return (reasons[finding.end].rank, snapshot.elapsed(finding.end) ?? .zero, -finding.depth)
  }

  private func finding(of node: Int, through wait: WaitSnapshot.Wait) -> Finding {
    let next = self[wait.node]
    // If the holder makes progress, the cause is that it holds the slot or the key.
    let isProgress = [.executing, .condition, .backingOff, .transitioning].contains(next.cause)
    let own: StallReport.Cause? =
      switch wait.kind {
      case .slot where next.wait == nil, .key where next.wait == nil: next.cause
      case .slot where isProgress: .saturated
      case .key where isProgress: .exclusivity
      case .dependency, .member, .ownStart, .groupStart, .task, .slot, .key, .user: nil
      }
    let isStep = nodes[wait.node].operation != nil && wait.kind != .ownStart
    return Finding(
      cause: own ?? next.cause,
      end: next.end,
      wait: wait,
      explainer: own == nil ? next.explainer : node,
      // Slots and keys are no operations, so the operation that waits for them is the root.
      root: nodes[next.root].operation == nil ? node : next.root,
      depth: next.depth + (isStep ? 1 : 0)
    )
  }
}

extension WaitSnapshot.Node {
  /// Whether the node waits for no other node, or for what its condition waits for.
  fileprivate var explainsItself: Bool { waits.isEmpty || stamp.phase == .suspended(.conditions) }
}
