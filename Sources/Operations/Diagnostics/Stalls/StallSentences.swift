import Foundation

extension StallFindings {
  mutating func entries() -> [StallReport.Entry] {
    var shown: [ObjectIdentifier: Int] = [:]
    for (index, node) in nodes.enumerated() {
      guard let operation = node.operation, !operation.isFinished else { continue }
      // The start represents a group whose finish is not part of the report.
      if !snapshot.isStart(index) || shown[ObjectIdentifier(operation)] == nil {
        shown[ObjectIdentifier(operation)] = index
      }
    }
    return shown.values.sorted { (self[$0].depth, $0) < (self[$1].depth, $1) }.map { entry(for: $0) }
  }

  private mutating func entry(for node: Int) -> StallReport.Entry {
    let representative = representative(for: node)
    let finding = self[representative]
    let own = nodes[node].operation
    let bottom = nodes[finding.root].operation
    return StallReport.Entry(
      operation: own?.displayName ?? "",
      place: (nodes[representative].place ?? nodes[node].place)?.name,
      cause: finding.cause,
      waitsFor: namesWaitedFor(by: representative),
      root: bottom === own ? nil : bottom?.displayName,
      seconds: snapshot.elapsed(node).map { $0 / .seconds(1) },
      description: "\(name(representative)) \(predicate(representative))."
    )
  }

  private func namesWaitedFor(by node: Int) -> [String] {
    var seen = Set(nodes[node].operation.map { [ObjectIdentifier($0)] } ?? [])
    return nodes[node].waits.flatMap { wait -> [String] in
      if snapshot.isOwnTask(wait) { return namesWaitedFor(by: wait.node) }
      let next = nodes[wait.node]
      let waited =
        next.isResource ? next.waits.prefix(WaitSnapshot.namesAtMost).map { nodes[$0.node] } : [next]
      return waited.compactMap { node in
        if case .task(let claimant) = node.subject { return claimant.name }
        return node.operation.flatMap { seen.insert(ObjectIdentifier($0)).inserted ? $0.displayName : nil }
      }
    }
  }

  private func name(_ node: Int) -> String { snapshot.name(node) }

  /// Says what a node waits for directly and, in a second clause, what is at the root. Tells each cycle once.
  private mutating func predicate(_ node: Int) -> String {
    let finding = self[node]
    if let (index, position) = finding.cycle {
      let cycle = Array(cycles[index][position...] + cycles[index][..<position])
      if let first = told[index] {
        return snapshot.steps(of: cycle, atMost: 1).joined() + ", in the cycle of \(name(first))"
      }
      told[index] = node
      return snapshot.sentence(of: cycle) + ", in a cycle"
    }
    guard let wait = finding.wait else { return reasons[node].predicate }
    if snapshot.isOwnTask(wait), self[wait.node].wait != nil { return predicate(wait.node) }
    let next = nodes[wait.node]
    let others = nodes[node].waits.filter { $0.node != wait.node && $0.kind != .ownStart }
    guard let awaited = next.isResource ? self[wait.node].wait?.node : wait.node else {
      return reasons[wait.node].predicate
    }
    // A cancelled operation waits for nothing else: its queue must start it so that it finishes.
    var text = nodes[node].stamp.isCancelled && wait.kind == .slot ? "was cancelled, and only " : ""
    text += snapshot.phrase(wait, of: node, and: others, usedBy: next.isResource ? users(next) : "")
    if wait.kind == .slot, finding.cause == .saturated { return text }
    var names = others.prefix(WaitSnapshot.namesAtMost).map { name($0.node) }
    if others.count > names.count { names.append((others.count - names.count).others) }
    if let last = names.popLast() { text += names.map { ", \($0)" }.joined() + " and \(last)" }
    let root = self[representative(for: awaited)].explainer
    if root != representative(for: awaited) { return "\(text); at the root, \(name(root)) \(predicate(root))" }
    let isOnlyOne = others.isEmpty && wait.kind != .slot && (!next.isResource || next.waits.count == 1)
    return "\(text)\(isOnlyOne ? ", which" : "; \(name(root))") \(predicate(root))"
  }

  private func users(_ resource: WaitSnapshot.Node) -> String {
    resource.waits.listed { wait in
      guard case .slots = resource.subject, let elapsed = snapshot.elapsed(wait.node) else { return name(wait.node) }
      return "\(name(wait.node)) for \(elapsed.reading)"
    }
  }
}
