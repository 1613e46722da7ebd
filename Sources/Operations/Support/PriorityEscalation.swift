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
