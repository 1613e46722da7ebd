import Foundation

extension WaitSnapshot {
  static let namesAtMost = 8

  func name(_ node: Int) -> String {
    switch nodes[node].subject {
    case .operation(let operation, _): operation.shownName
    case .task(let claimant): claimant.quotedName.inOneLine
    case .slots: "a slot"
    case .key(let obstacle): "the key \(obstacle.key.quoted)"
    case .room(let group, _): "room in \(group.shownName)"
    case .oneOf: "a result"
    }
  }

  /// Whether the wait is for the body of a task of the same work, which goes without saying.
  func isOwnTask(_ wait: Wait) -> Bool {
    if case (.task, .task) = (wait.kind, nodes[wait.node].subject) { true } else { false }
  }

  /// Says what a node waits for: an operation or a task, whose name is followed by those of `others`, or a resource.
  func phrase(_ wait: Wait, of node: Int, and others: [Wait] = [], usedBy users: String = "") -> String {
    let next = nodes[wait.node]
    let name = name(wait.node)
    switch next.subject {
    case .key(.earlier): return "waits for \(name) behind \(users)"
    case .key(.holders):
      let limit = if case .key(let limit) = wait.kind, limit > 1, limit < .max { " (limit \(limit))" } else { "" }
      return "waits for \(name)\(limit), held by \(users)"
    case .slots(let place):
      let slots = next.waits.count == 1 ? "the slot" : "one of the \(next.waits.count) slots"
      return "waits for \(slots) of \(place.description), taken by \(users)"
    case .room: return "waits for \(name), taken by \(users)"
    case .oneOf: return "waits for \(next.waits.count == 1 ? "the result" : "one of the results") of \(users)"
    case .operation, .task: break
    }
    switch wait.kind {
    case .member where nodes[node].operation is GroupOperation:
      let areMembers = !others.isEmpty && others.allSatisfy { $0.kind == .member }
      return "waits for its \(areMembers ? "members" : "member") \(name)"
    case .member: return "waits for \(name) inside it"
    case .groupStart: return "cannot begin before its group \(name)"
    case .dependency, .ownStart, .task, .slot, .key, .user: return "waits for \(name)"
    }
  }

  /// Says what the first node of a cycle waits for, and so on, back to the first.
  func sentence(of cycle: [Int]) -> String {
    let steps = steps(of: cycle, atMost: Self.namesAtMost + 1)
    let end = steps.count > Self.namesAtMost ? ", and so on, back to \(name(cycle[0]))" : ""
    return steps.prefix(Self.namesAtMost).joined(separator: ", which ") + end
  }

  func steps(of cycle: [Int], atMost count: Int) -> [String] {
    var steps: [String] = []
    var resource: Wait?
    for (node, next) in zip(cycle, cycle.dropFirst() + cycle.prefix(1)) where steps.count < count {
      guard let wait = nodes[node].waits.first(where: { $0.node == next }), !isOwnTask(wait) else { continue }
      if nodes[next].isResource {
        resource = wait
      } else if let wait = resource {
        steps.append(phrase(wait, of: node, usedBy: name(next)))
        resource = nil
      } else if wait.kind != .ownStart {
        steps.append(phrase(wait, of: node))
      }
    }
    return steps
  }
}
