import Foundation

/// A description of findings in sentences.
struct StallDescription {
  /// The largest number of names, or of steps of a cycle, in a sentence.
  private static let namesAtMost = 8

  private let findings: StallFindings
  /// The position of each node of a cycle within that cycle.
  private var positions: [Int: Int] = [:]
  /// The wait of each node of a cycle for the next node. The waits are found once, because a node can have many waits
  /// and many entries can describe the cycle.
  private var steps: [Int: StallNode.Wait] = [:]
  /// The number of waits of each node, minus one. A group's wait for its own start does not count.
  private let others: [Int]

  init(_ findings: StallFindings) {
    self.findings = findings
    others = findings.nodes.indices.map { node in
      findings.nodes[node].waits.count { $0.kind != .ownStart } - 1
    }
    for cycle in findings.cycles {
      for (position, node) in cycle.enumerated() {
        let next = cycle[(position + 1) % cycle.count]
        positions[node] = position
        steps[node] = findings.nodes[node].waits.first { $0.node == next }
      }
    }
  }

  /// The entries of all operations that have not finished, roots first.
  var entries: [StallReport.Entry] {
    let ends = Set(
      findings.nodes.compactMap { node -> ObjectIdentifier? in
        if case .operation(let operation) = node.subject { return ObjectIdentifier(operation) }
        return nil
      }
    )
    let nodes = findings.nodes.indices.filter { node in
      switch findings.nodes[node].subject {
      case .operation(let operation): !operation.isFinished
      // The start represents a group whose finish is not part of the report.
      case .start(let group): !group.isFinished && !ends.contains(ObjectIdentifier(group))
      case .slots, .key: false
      }
    }
    let entries = nodes.map { (entry: entry(for: $0), depth: findings[$0].depth) }
    let order = entries.indices.sorted { left, right in
      func key(_ index: Int) -> (Int, Int, Int) { (entries[index].entry.isRoot ? 0 : 1, entries[index].depth, index) }
      return key(left) < key(right)
    }
    return order.map { entries[$0].entry }
  }

  private func entry(for node: Int) -> StallReport.Entry {
    let representative = findings.representative(for: node)
    let finding = findings[representative]
    let (own, bottom) = (findings.nodes[node].operation, findings.nodes[finding.root].operation)
    return StallReport.Entry(
      operation: own?.displayName ?? "",
      place: (findings.nodes[representative].place ?? findings.nodes[node].place)?.name,
      cause: finding.cause,
      waitsFor: namesWaitedFor(by: representative),
      root: bottom === own ? nil : bottom?.displayName,
      elapsed: findings.nodes[node].elapsed,
      description: "\(name(representative)) \(predicate(representative))."
    )
  }

  private func namesWaitedFor(by node: Int) -> [String] {
    var seen = Set(findings.nodes[node].operation.map { [ObjectIdentifier($0)] } ?? [])
    return findings.nodes[node].waits.flatMap { wait -> [String] in
      let next = findings.nodes[wait.node]
      let operations = next.operation.map { [$0] }
      let waited = operations ?? next.waits.prefix(Self.namesAtMost).compactMap { findings.nodes[$0.node].operation }
      return waited.filter { seen.insert(ObjectIdentifier($0)).inserted }.map(\.displayName)
    }
  }

  private func name(_ node: Int) -> String {
    switch findings.nodes[node].subject {
    case .operation(let operation), .start(let operation): operation.shownName
    case .slots: "a slot"
    case .key(let obstacle): "the key \(obstacle.queue.key.quoted)"
    }
  }

  // MARK: Sentences

  /// Returns the predicate of the sentence about a node: what it waits for and, in a second clause, what keeps that
  /// from finishing.
  private func predicate(_ node: Int) -> String {
    let finding = findings[node]
    if finding.cycle != nil { return "\(cycle(from: node)), in a cycle" }
    guard let wait = finding.wait else { return findings.nodes[node].ownPredicate }
    let next = findings.nodes[wait.node]
    var (awaited, isOnlyOne, text) = (wait.node, others[node] < 1, "")
    if next.operation != nil {
      text = phrase(wait, of: node)
    } else {
      // The node waits for slots or for a key.
      let beyond = findings[wait.node]
      guard let user = beyond.wait?.node ?? (beyond.cycle == nil ? nil : beyond.explainer) else {
        return next.ownPredicate
      }
      text = phrase(wait, forUseBy: users(next))
      if finding.cause == .saturated { return text }
      isOnlyOne = isOnlyOne && next.waits.count == 1 && wait.kind != .slot
      awaited = user
    }
    text += otherNames(of: node, except: wait)
    awaited = findings.representative(for: awaited)
    let root = findings[awaited].explainer
    if root != awaited { return "\(text); at the root, \(name(root)) \(predicate(root))" }
    return "\(text)\(isOnlyOne ? ", which" : "; \(name(root))") \(predicate(root))"
  }

  /// Returns the names of what else a node waits for, to append to the first name.
  private func otherNames(of node: Int, except wait: StallNode.Wait) -> String {
    let waits = findings.nodes[node].waits.lazy.filter { $0.node != wait.node && $0.kind != .ownStart }
    var names = Array(waits.prefix(Self.namesAtMost).map { name($0.node) })
    let rest = others[node] - names.count
    if rest > 0 { names.append(rest.others) }
    guard let last = names.popLast() else { return "" }
    return names.map { ", \($0)" }.joined() + " and \(last)"
  }

  private func phrase(_ wait: StallNode.Wait, of node: Int) -> String {
    let other = name(wait.node)
    return switch wait.kind {
    case .member where findings.nodes[node].operation is GroupOperation: "waits for its member \(other)"
    case .member: "waits for \(other) inside it"
    case .groupStart: "cannot begin before its group \(other)"
    case .dependency, .ownStart, .slot, .key, .user: "waits for \(other)"
    }
  }

  /// Returns the phrase about a wait for a slot or a key in use by other operations.
  private func phrase(_ wait: StallNode.Wait, forUseBy users: String) -> String {
    let resource = findings.nodes[wait.node]
    switch wait.kind {
    case .key(let limit) where resource.waits.first?.kind == .user(isHolder: true):
      return "waits for \(name(wait.node))\(limit == 1 || limit == .max ? "" : " (limit \(limit))"), held by \(users)"
    case .key: return "waits for \(name(wait.node)) behind \(users)"
    default:
      let (count, place) = (resource.waits.count, resource.place?.description ?? "its queue")
      return "waits for \(count == 1 ? "the slot" : "a slot of the \(count)") of \(place), taken by \(users)"
    }
  }

  private func users(_ resource: StallNode) -> String {
    let names = resource.waits.prefix(Self.namesAtMost).map { wait in
      var time = ""
      if case .slots = resource.subject, let elapsed = findings.nodes[wait.node].elapsed {
        time = " for \(elapsed.reading)"
      }
      return name(wait.node) + time
    }
    let rest = resource.waits.count - names.count
    return names.joined(separator: ", ") + (rest > 0 ? " and \(rest.others)" : "")
  }

  /// Returns the waits of a cycle, from a node back to itself.
  private func cycle(from start: Int) -> String {
    guard let index = findings[start].cycle, let position = positions[start] else { return "" }
    let cycle = findings.cycles[index]
    var steps: [String] = []
    var resource: StallNode.Wait?
    for step in cycle.indices {
      let node = cycle[(position + step) % cycle.count]
      let next = cycle[(position + step + 1) % cycle.count]
      guard let wait = self.steps[node] else { continue }
      if findings.nodes[next].operation == nil {
        resource = wait
      } else if let wait = resource {
        steps.append(phrase(wait, forUseBy: name(next)))
        resource = nil
      } else if wait.kind != .ownStart {
        steps.append(phrase(wait, of: node))
      }
      if steps.count == Self.namesAtMost, step + 2 < cycle.count {
        return steps.joined(separator: ", which ") + ", and so on, back to \(name(start))"
      }
    }
    return steps.joined(separator: ", which ")
  }
}
