import Foundation

/// Says in sentences what has been found.
struct StallWords {
  /// After that a work that goes on may be one that has forgotten to say that it is done.
  private static let longExecution = Duration.seconds(1)
  /// How many steps of a circle, and how many who have slots, are named.
  private static let namesAtMost = 8

  private let findings: StallFindings
  /// Of those that are in a circle.
  private var positions: [Int: Int] = [:]
  /// By what each of those waits for the next. Looked for once: it may be one of many, and many may tell of the circle.
  private var steps: [Int: StallNode.Wait] = [:]

  init(_ findings: StallFindings) {
    self.findings = findings
    for circle in findings.circles {
      for (position, node) in circle.enumerated() {
        let next = circle[(position + 1) % circle.count]
        positions[node] = position
        steps[node] = findings.nodes[node].waits.first { $0.node == next }
      }
    }
  }

  /// The entries of all operations that have not finished.
  var entries: [StallReport.Entry] {
    let nodes = findings.nodes.indices.filter { node in
      guard case .operation(let operation) = findings.nodes[node].subject else { return false }
      return !operation.isFinished
    }
    let entries = nodes.map { (entry: entry(for: $0), depth: findings[$0].depth) }
    return entries.enumerated().sorted { left, right in
      func key(_ item: (offset: Int, element: (entry: StallReport.Entry, depth: Int))) -> (Int, Int, Int) {
        (item.element.entry.waitsFor.isEmpty ? 0 : 1, item.element.depth, item.offset)
      }
      return key(left) < key(right)
    }.map(\.element.entry)
  }

  private func entry(for node: Int) -> StallReport.Entry {
    let speaker = findings.speaker(for: node)
    let finding = findings[speaker]
    return StallReport.Entry(
      operation: findings.nodes[node].operation?.displayName ?? "",
      place: (findings.nodes[speaker].place ?? findings.nodes[node].place)?.name,
      cause: finding.cause,
      waitsFor: namesWaitedFor(by: speaker),
      root: finding.explainer == speaker ? nil : findings.nodes[finding.explainer].operation?.displayName,
      elapsed: findings.nodes[node].elapsed,
      description: "\(name(speaker)) \(predicate(speaker))."
    )
  }

  private func namesWaitedFor(by node: Int) -> [String] {
    findings.nodes[node].waits.flatMap { wait in
      let next = findings.nodes[wait.node]
      if let operation = next.operation { return [operation.displayName] }
      return next.waits.prefix(Self.namesAtMost).compactMap { findings.nodes[$0.node].operation?.displayName }
    }
  }

  private func name(_ node: Int) -> String { findings.nodes[node].operation?.quotedName ?? "" }

  // MARK: Sentences

  /// What is said of an operation.
  private func predicate(_ node: Int) -> String {
    let finding = findings[node]
    if finding.circle != nil { return "\(circle(from: node)), in a circle" }
    guard let wait = finding.wait else { return predicate(of: findings.nodes[node]) }
    let next = findings.nodes[wait.node]
    if next.operation != nil { return "\(phrase(wait, of: node)), which \(rest(wait.node))" }
    // Slots.
    let beyond = findings[wait.node]
    guard let holder = beyond.wait?.node ?? (beyond.circle == nil ? nil : beyond.explainer) else {
      return predicate(of: next)
    }
    let slots = "waits for a slot of \(next.place?.description ?? "its queue"), taken by \(holders(next))"
    return finding.cause == .saturated ? slots : "\(slots); \(name(holder)) \(rest(holder))"
  }

  /// The same, if the bottom of it is further on than the next operation.
  private func rest(_ node: Int) -> String {
    let node = findings.speaker(for: node)
    let finding = findings[node]
    if finding.distance <= 1 { return predicate(node) }
    let others = finding.distance == 2 ? "another" : "\(finding.distance - 1) others"
    return "waits, by way of \(others), for \(name(finding.explainer)), which \(predicate(finding.explainer))"
  }

  private func phrase(_ wait: StallNode.Wait, of node: Int) -> String {
    let other = name(wait.node)
    return switch wait.kind {
    case .member: "waits for its member \(other)"
    case .beginning: "waits for its group \(other) to begin"
    case .key(let key, isHeld: true): "waits for the key \(key.quoted), held by \(other)"
    case .key(let key, isHeld: false): "waits for the key \(key.quoted) behind \(other)"
    case .dependency, .slot, .slotHolder: "waits for \(other)"
    }
  }

  private func holders(_ slots: StallNode) -> String {
    let names = slots.waits.prefix(Self.namesAtMost).map { wait in
      name(wait.node) + (findings.nodes[wait.node].elapsed.map { " for \($0.reading)" } ?? "")
    }
    let rest = slots.waits.count - names.count
    return names.joined(separator: ", ") + (rest > 0 ? " and \(rest) others" : "")
  }

  /// Around the circle, from one and back to it.
  private func circle(from start: Int) -> String {
    guard let index = findings[start].circle, let position = positions[start] else { return "" }
    let circle = findings.circles[index]
    var steps: [String] = []
    var slots = ""
    for step in circle.indices {
      let node = circle[(position + step) % circle.count]
      let next = circle[(position + step + 1) % circle.count]
      guard let wait = self.steps[node] else { continue }
      if findings.nodes[next].operation == nil {
        slots = "waits for a slot of \(findings.nodes[next].place?.description ?? "its queue"), taken by "
      } else if !slots.isEmpty {
        steps.append(slots + name(next))
        slots = ""
      } else if !findings.isOwnBeginning(wait, of: node) {
        steps.append(phrase(wait, of: node))
      }
      if steps.count == Self.namesAtMost, step + 2 < circle.count {
        return steps.joined(separator: ", which ") + ", and so on, back to \(name(start))"
      }
    }
    return steps.joined(separator: ", which ")
  }

  /// What is said of one that waits for no other.
  private func predicate(of node: StallNode) -> String {
    let isPlain = node.operation.map { !($0 is AsyncOperation) } ?? false
    switch node.obstacle ?? .ending {
    case .notAdded(isCertain: true): return "was never added to a queue or a group"
    case .notAdded where isPlain:
      return
        "is a plain Foundation operation, and in none of the queues that were looked into: if nobody has added it to "
        + "another one, it never starts"
    case .notAdded:
      return
        "was added to no queue or group by the toolkit's own verbs: if nobody has added it by Foundation's, it never "
        + "starts"
    case .suspended(let place): return "cannot start, for \(place.description) is suspended"
    case .hasNoSlots(let place): return "cannot start, for \(place.description) executes 0 operations at once"
    case .waitsForMembers: return "is suspended, and waits for members"
    case .notReady:
      return
        "is not ready, though all it depends on has finished: its isReady is overridden, or a barrier block is before it"
    case .condition(let name):
      let condition = name.map { "its condition “\($0)” is" } ?? "its conditions are"
      return "has not begun, for \(condition) being evaluated"
        + (node.elapsed.map { ", for \($0.reading) so far" } ?? "")
    case .executing:
      guard let elapsed = node.elapsed else {
        return "is executing; since when, a plain Foundation operation does not tell"
      }
      let guess = elapsed < Self.longExecution ? "" : ": perhaps it never calls finish()"
      return "has been executing for \(elapsed.reading), and has not finished" + guess
    case .pausing: return "waits for its next attempt"
    case .starting(.queue(.main)?): return "is about to start, as soon as the main thread comes to it"
    case .starting(let place?): return "is about to start, as soon as there is a thread for \(place.description)"
    case .starting(nil): return "is about to start"
    case .ending: return "is about to finish"
    }
  }
}
