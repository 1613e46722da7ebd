import Foundation

extension AsyncOperation {
  /// Raises the priority of the operation, and of the unfinished operations on which its end depends.
  ///
  /// These are its dependencies, its members, the operations inside it, and the holders of the keys that it waits for.
  /// Their `queuePriority` rises. The task of a ``TaskOperation`` is escalated (on Apple platforms, from version 26).
  /// A priority never falls, and the default priority of a task has no effect. Members that are added later, later
  /// attempts, and the next holders of the keys receive the priority as well.
  ///
  /// A task that awaits an operation by `run`, `value`, `completed()` or `withSlot` lends the operation its own priority in
  /// this way, when it begins to wait and when its priority rises.
  ///
  /// - Complexity: O(n) for n operations whose priority rises, and O(1) if the operation has this priority.
  public final func escalatePriority(to priority: TaskPriority) {
    if priority.lent == 0 { return }
    var rest: [AsyncOperation] = []
    adopt(priority, &rest)
    while let operation = rest.popLast() { operation.adopt(priority, &rest) }
  }

  /// Adds the dependencies and what runs inside, if the priority has risen. The table of keys raises the holders of keys.
  private func adopt(_ priority: TaskPriority, _ rest: inout [AsyncOperation]) {
    let change = core.withLock { core -> (Task<Void, Never>?, [DependencyLedger.Dependency], KeyRequest?)? in
      if priority.lent <= core.lent || core.lifecycle.phase.isOver { return nil }
      core.lent = priority.lent
      return (core.task, core.ledger.dependencies.entries, core.keys)
    }
    guard let (task, dependencies, keys) = change else { return }
    task?.raisePriority(to: priority)
    let queuePriority = priority.queuePriority
    if queuePriority.rawValue > self.queuePriority.rawValue { self.queuePriority = queuePriority }
    // Passes the priority on to the holders of the keys, even if a subclass overrides the property.
    keys?.priorityDidChange(to: self.queuePriority, lent: priority.lent)
    for case .own(let dependency) in dependencies { rest.append(dependency) }
    rest += members
  }
}

extension TaskPriority {
  /// The priority for those for which a task of this priority waits, or 0 because it is not above the default.
  var lent: UInt8 { self > .medium ? rawValue : 0 }

  /// The priority of an operation for which a task of this priority waits.
  var queuePriority: Operation.QueuePriority {
    if self > .high { return .veryHigh }
    if self > .medium { return .high }
    if self == .medium { return .normal }
    return self < .low ? .veryLow : .low
  }
}

/// Runs `body`, and calls `escalate` with the priority of the task now, and when the priority rises meanwhile (SE-0462).
nonisolated(nonsending) func lendingPriority<Value>(
  to escalate: @escaping @Sendable (TaskPriority) -> Void,
  while body: () async throws -> Value
) async rethrows -> Value {
  escalate(Task.currentPriority)
  guard #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) else { return try await body() }
  return try await withTaskPriorityEscalationHandler(operation: body, onPriorityEscalated: { escalate($1) })
}

extension Task {
  func raisePriority(to priority: TaskPriority) {
    guard #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) else { return }
    escalatePriority(to: priority)
  }
}
