/// What is at the bottom of it, for every point of the graph of what is waited for.
///
/// Who waits for several others is as badly off as with the worst of them; who needs one of several slots, as with the
/// best. O(n + e), without recursion.
struct StallFindings {
  struct Finding {
    let cause: StallReport.Cause
    let severity: Severity
    /// Which of the waits leads there. Nil at the bottom, and in a circle.
    var wait: StallNode.Wait?
    /// The point that the cause is about.
    let explainer: Int
    /// The point at the very bottom.
    let bottom: Int
    /// How many operations further on the explainer is.
    var distance = 0
    /// How many steps of whatever kind it is to the very bottom.
    let depth: Int
    /// Which of the circles it is in.
    var circle: Int?
  }

  /// How little hope there is that it gets on by itself; then, how long it has lasted.
  struct Severity: Comparable {
    let rank: Int
    var elapsed = Duration.zero

    static func < (left: Self, right: Self) -> Bool { (left.rank, left.elapsed) < (right.rank, right.elapsed) }
  }

  let nodes: [StallNode]
  let circles: [[Int]]
  private var findings: [Finding?]

  init(_ nodes: [StallNode]) {
    self.nodes = nodes
    findings = Array(repeating: nil, count: nodes.count)
    let order = WaitOrder(
      nodes.map { $0.waits.map(\.node) },
      needed: { nodes[$0].needed },
      rank: { (nodes[$0].obstacle ?? .ending).cause.rank }
    )
    circles = order.circles
    for node in order.order { findings[node] = finding(of: node) }
    for (index, circle) in circles.enumerated() {
      for (position, node) in circle.enumerated() {
        // Whoever has the slot speaks for slots.
        let isSlots = nodes[node].operation == nil
        let speaker = isSlots ? circle[(position + 1) % circle.count] : node
        findings[node] = Finding(
          cause: .circle,
          severity: .circle,
          explainer: speaker,
          bottom: speaker,
          distance: isSlots ? 1 : 0,
          depth: 0,
          circle: index
        )
      }
    }
    // Everybody else waits for one of those, directly or not.
    var toDo = circles.flatMap(\.self)
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
      misuse("Nothing was found out about the point \(node) of a stall report.")
    }
    return finding
  }

  /// The point that speaks for one: the beginning of a group if that is what its end waits for.
  func speaker(for node: Int) -> Int {
    guard let wait = self[node].wait, isOwnBeginning(wait, of: node) else { return node }
    return wait.node
  }

  func isOwnBeginning(_ wait: StallNode.Wait, of node: Int) -> Bool {
    guard let operation = nodes[node].operation else { return false }
    return nodes[wait.node].operation === operation
  }

  private func finding(of node: Int) -> Finding {
    if let wait = decisiveWait(of: node) { return finding(of: node, through: wait) }
    let (cause, rank) = (nodes[node].obstacle ?? .ending).cause
    let severity = Severity(rank: rank, elapsed: nodes[node].elapsed ?? .zero)
    var depth = -1
    if case .operation = nodes[node].subject { depth = 0 }
    return Finding(cause: cause, severity: severity, explainer: node, bottom: node, depth: depth)
  }

  /// The worst of those that have to be over. Who needs only some of them comes as soon as there are enough, in the
  /// order of how much hope there is: those that come later, or are in a circle, do not matter.
  private func decisiveWait(of node: Int) -> StallNode.Wait? {
    nodes[node].waits.filter { findings[$0.node] != nil }.max { left, right in
      let (left, right) = (self[left.node], self[right.node])
      return left.severity == right.severity ? left.distance > right.distance : left.severity < right.severity
    }
  }

  private func finding(of node: Int, through wait: StallNode.Wait) -> Finding {
    let next = self[wait.node]
    let own = ownCause(wait, next)
    let isStep = nodes[wait.node].operation != nil && !isOwnBeginning(wait, of: node)
    return Finding(
      cause: own ?? next.cause,
      severity: next.severity,
      wait: wait,
      explainer: own == nil ? next.explainer : node,
      // The cause of a place is that of the operation that waits for it.
      bottom: nodes[next.bottom].operation == nil ? node : next.bottom,
      distance: own == nil ? next.distance + (isStep ? 1 : 0) : 0,
      depth: next.depth + 1
    )
  }

  /// Nil if the cause is further on.
  private func ownCause(_ wait: StallNode.Wait, _ next: Finding) -> StallReport.Cause? {
    switch wait.kind {
    case .slot where next.wait == nil && next.circle == nil: next.cause
    // Whoever has the slot or the key gets on: that one has it is the cause.
    case .slot where next.cause.isProgress: .saturated
    case .key where next.cause.isProgress: .exclusivity
    case .dependency, .member, .beginning, .slot, .slotHolder, .key: nil
    }
  }
}

extension StallFindings.Severity {
  fileprivate static let circle = Self(rank: 10)
}

extension StallReport.Cause {
  fileprivate var isProgress: Bool { [.executing, .condition, .pausing, .moving].contains(self) }
}

extension StallNode.Obstacle {
  /// And how little hope there is with it.
  fileprivate var cause: (StallReport.Cause, rank: Int) {
    switch self {
    case .notAdded(isCertain: true): (.notAdded, 9)
    case .suspended, .hasNoSlots, .waitsForMembers: (.suspended, 8)
    case .notReady: (.notReady, 7)
    case .notAdded(isCertain: false): (.notAdded, 6)
    case .condition: (.condition, 3)
    case .executing: (.executing, 3)
    case .pausing: (.pausing, 2)
    case .starting: (.moving, 1)
    case .ending: (.moving, 0)
    }
  }
}
