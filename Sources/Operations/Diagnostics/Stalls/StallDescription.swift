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
      findings.nodes[node].waits.count { !findings.isWaitForOwnStart($0, of: node) } - 1
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
      case .beginning(let group): !group.isFinished && !ends.contains(ObjectIdentifier(group))
      case .slots: false
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

  private func name(_ node: Int) -> String { findings.nodes[node].operation?.shownName ?? "" }

  // MARK: Sentences

  /// Returns the predicate of the sentence about a node.
  private func predicate(_ node: Int) -> String {
    let finding = findings[node]
    if finding.cycle != nil { return "\(cycle(from: node)), in a cycle" }
    guard let wait = finding.wait else { return findings.nodes[node].ownPredicate }
    let next = findings.nodes[wait.node]
    guard next.operation == nil else {
      let phrase = phrase(wait, of: node)
      if others[node] < 1 { return "\(phrase), which \(rest(wait.node))" }
      return "\(phrase)\(otherNames(of: node, except: wait)); \(name(wait.node)) \(rest(wait.node))"
    }
    // The node waits for slots.
    let beyond = findings[wait.node]
    guard let holder = beyond.wait?.node ?? (beyond.cycle == nil ? nil : beyond.explainer) else {
      return next.ownPredicate
    }
    let slots = "\(phrase(forSlots: next)), taken by \(holders(next))"
    return finding.cause == .saturated ? slots : "\(slots); \(name(holder)) \(rest(holder))"
  }

  /// Returns the predicate of an awaited node. If the cause describes a node further away than the next operation, the
  /// predicate lists the operations in between.
  private func rest(_ node: Int) -> String {
    let node = findings.representative(for: node)
    let finding = findings[node]
    if finding.distance <= 1 { return predicate(node) }
    let names = namesBetween(node, and: finding.explainer)
    let rest = finding.distance - 1 - names.count
    let others = names.joined(separator: ", ") + (rest > 0 ? " and \(rest.others)" : "")
    return "waits, by way of \(others), for \(name(finding.explainer)), which \(predicate(finding.explainer))"
  }

  /// Returns the names of the other operations that a node waits for, to append to the first name.
  private func otherNames(of node: Int, except wait: StallNode.Wait) -> String {
    let operations = findings.nodes[node].waits.filter {
      $0.node != wait.node && !findings.isWaitForOwnStart($0, of: node) && findings.nodes[$0.node].operation != nil
    }
    var names = operations.prefix(Self.namesAtMost).map { name($0.node) }
    let rest = others[node] - names.count
    if rest > 0 { names.append(rest.others) }
    guard let last = names.popLast() else { return "" }
    return names.map { ", \($0)" }.joined() + " and \(last)"
  }

  /// Returns the names of the operations between a node and the node that explains it.
  private func namesBetween(_ start: Int, and end: Int) -> [String] {
    var names: [String] = []
    var node = start
    while names.count < Self.namesAtMost, let wait = findings[node].wait, wait.node != end {
      if findings.nodes[wait.node].operation != nil, !findings.isWaitForOwnStart(wait, of: node) {
        names.append(name(wait.node))
      }
      node = wait.node
    }
    return names
  }

  private func phrase(_ wait: StallNode.Wait, of node: Int) -> String {
    let other = name(wait.node)
    return switch wait.kind {
    case .member where findings.nodes[node].operation is GroupOperation: "waits for its member \(other)"
    case .member: "waits for \(other) inside it"
    case .beginning: "cannot begin before its group \(other)"
    case .key(let key, let limit, isHeld: true): "waits for the key \(key.quoted)\(limited(limit)), held by \(other)"
    case .key(let key, _, isHeld: false): "waits for the key \(key.quoted) behind \(other)"
    case .dependency, .slot, .slotHolder: "waits for \(other)"
    }
  }

  private func limited(_ limit: Int) -> String { limit == 1 || limit == .max ? "" : " (limit \(limit))" }

  private func phrase(forSlots slots: StallNode) -> String {
    let place = slots.place?.description ?? "its queue"
    return slots.waits.count == 1
      ? "waits for the slot of \(place)" : "waits for a slot of the \(slots.waits.count) of \(place)"
  }

  private func holders(_ slots: StallNode) -> String {
    let names = slots.waits.prefix(Self.namesAtMost).map { wait in
      name(wait.node) + (findings.nodes[wait.node].elapsed.map { " for \($0.reading)" } ?? "")
    }
    let rest = slots.waits.count - names.count
    return names.joined(separator: ", ") + (rest > 0 ? " and \(rest.others)" : "")
  }

  /// Returns the waits of a cycle, from a node back to itself.
  private func cycle(from start: Int) -> String {
    guard let index = findings[start].cycle, let position = positions[start] else { return "" }
    let cycle = findings.cycles[index]
    var steps: [String] = []
    var slots = ""
    for step in cycle.indices {
      let node = cycle[(position + step) % cycle.count]
      let next = cycle[(position + step + 1) % cycle.count]
      guard let wait = self.steps[node] else { continue }
      if findings.nodes[next].operation == nil {
        slots = phrase(forSlots: findings.nodes[next]) + ", taken by "
      } else if !slots.isEmpty {
        steps.append(slots + name(next))
        slots = ""
      } else if !findings.isWaitForOwnStart(wait, of: node) {
        steps.append(phrase(wait, of: node))
      }
      if steps.count == Self.namesAtMost, step + 2 < cycle.count {
        return steps.joined(separator: ", which ") + ", and so on, back to \(name(start))"
      }
    }
    return steps.joined(separator: ", which ")
  }
}
