import Foundation

extension StallFindings {
  private static let namesAtMost = 8

  var entries: [StallReport.Entry] {
    var shown: [ObjectIdentifier: Int] = [:]
    for (index, node) in nodes.enumerated() {
      guard let operation = node.operation, !operation.isFinished else { continue }
      // The start represents a group whose finish is not part of the report.
      if case .operation(_, isStart: true) = node.subject, shown[ObjectIdentifier(operation)] != nil { continue }
      shown[ObjectIdentifier(operation)] = index
    }
    return shown.values.sorted { (self[$0].depth, $0) < (self[$1].depth, $1) }.map { entry(for: $0) }
  }

  private func entry(for node: Int) -> StallReport.Entry {
    let representative = representative(for: node)
    let finding = self[representative]
    let (own, bottom) = (nodes[node].operation, nodes[finding.root].operation)
    return StallReport.Entry(
      operation: own?.displayName ?? "",
      place: (nodes[representative].place ?? nodes[node].place)?.name,
      cause: finding.cause,
      waitsFor: namesWaitedFor(by: representative),
      root: bottom === own ? nil : bottom?.displayName,
      seconds: nodes[node].elapsed.map { $0 / .seconds(1) },
      description: "\(name(representative)) \(predicate(representative))."
    )
  }

  private func namesWaitedFor(by node: Int) -> [String] {
    var seen = Set(nodes[node].operation.map { [ObjectIdentifier($0)] } ?? [])
    return nodes[node].waits.flatMap { wait -> [String] in
      let next = nodes[wait.node]
      let waited = next.operation == nil ? next.waits.prefix(Self.namesAtMost).map { nodes[$0.node] } : [next]
      return waited.compactMap { node in
        if case .task(let name, _) = node.subject { return name }
        return node.operation.flatMap { seen.insert(ObjectIdentifier($0)).inserted ? $0.displayName : nil }
      }
    }
  }

  private func name(_ node: Int) -> String {
    switch nodes[node].subject {
    case .operation(let operation, _): operation.shownName
    case .slots: "a slot"
    case .task(let name, _): "“\(name.inOneLine)”"
    case .key(let obstacle): "the key \(obstacle.use.key.quoted)"
    }
  }

  /// Says what a node waits for directly and, in a second clause, what is at the root.
  private func predicate(_ node: Int) -> String {
    let finding = self[node]
    if let (index, position) = finding.cycle { return sentence(of: cycles[index], from: position) + ", in a cycle" }
    guard let wait = finding.wait else { return nodes[node].reason.predicate }
    let next = nodes[wait.node]
    let others = nodes[node].waits.filter { $0.node != wait.node && $0.kind != .ownStart }
    var (awaited, isOnlyOne, text) = (wait.node, others.isEmpty, "")
    if next.operation != nil {
      text = phrase(wait, of: node)
    } else {
      // The node waits for slots or for a key.
      guard let user = self[wait.node].wait?.node else { return next.reason.predicate }
      // A cancelled operation waits for nothing else: its queue must start it so that it finishes.
      let isEnding = nodes[node].stamp.isCancelled && wait.kind == .slot
      text = (isEnding ? "was cancelled, and only " : "") + phrase(wait, forUseBy: users(next))
      if wait.kind == .slot, finding.cause == .saturated { return text }
      isOnlyOne = isOnlyOne && next.waits.count == 1 && wait.kind != .slot
      awaited = user
    }
    var names = others.prefix(Self.namesAtMost).map { name($0.node) }
    if others.count > names.count { names.append((others.count - names.count).others) }
    if let last = names.popLast() { text += names.map { ", \($0)" }.joined() + " and \(last)" }
    awaited = representative(for: awaited)
    let root = self[awaited].explainer
    if root != awaited { return "\(text); at the root, \(name(root)) \(predicate(root))" }
    return "\(text)\(isOnlyOne ? ", which" : "; \(name(root))") \(predicate(root))"
  }

  private func phrase(_ wait: StallNode.Wait, of node: Int) -> String {
    let other = name(wait.node)
    return switch wait.kind {
    case .member where nodes[node].operation is GroupOperation: "waits for its member \(other)"
    case .member: "waits for \(other) inside it"
    case .groupStart: "cannot begin before its group \(other)"
    case .dependency, .ownStart, .task, .slot, .key, .user: "waits for \(other)"
    }
  }

  private func phrase(_ wait: StallNode.Wait, forUseBy users: String) -> String {
    let resource = nodes[wait.node]
    switch (wait.kind, resource.subject) {
    case (.key(let limit), .key(.holders)):
      return "waits for \(name(wait.node))\(limit == 1 || limit == .max ? "" : " (limit \(limit))"), held by \(users)"
    case (_, .slots(let place)):
      let slots = resource.waits.count == 1 ? "the slot" : "one of the \(resource.waits.count) slots"
      return "waits for \(slots) of \(place.description), taken by \(users)"
    default: return "waits for \(name(wait.node)) behind \(users)"
    }
  }

  private func users(_ resource: StallNode) -> String {
    resource.waits.listed { wait in
      guard case .slots = resource.subject, let elapsed = nodes[wait.node].elapsed else { return name(wait.node) }
      return "\(name(wait.node)) for \(elapsed.reading)"
    }
  }

  private func sentence(of cycle: [Int], from position: Int) -> String {
    var steps: [String] = []
    var resource: StallNode.Wait?
    for step in cycle.indices {
      let node = cycle[(position + step) % cycle.count]
      let next = cycle[(position + step + 1) % cycle.count]
      guard let wait = self[node].wait else { continue }
      if nodes[next].operation == nil {
        resource = wait
      } else if let wait = resource {
        steps.append(phrase(wait, forUseBy: name(next)))
        resource = nil
      } else if wait.kind != .ownStart {
        steps.append(phrase(wait, of: node))
      }
      if steps.count == Self.namesAtMost, step + 2 < cycle.count {
        return steps.joined(separator: ", which ") + ", and so on, back to \(name(cycle[position]))"
      }
    }
    return steps.joined(separator: ", which ")
  }
}
