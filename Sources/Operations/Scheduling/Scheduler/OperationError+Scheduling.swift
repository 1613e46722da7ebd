extension OperationError {
  static func shutDown(_ scheduler: String) -> OperationError {
    OperationError(.shutDown, "The scheduler “\(scheduler)” has been shut down: the event was not run.")
  }

  static func overflow(_ scheduler: String, _ capacity: EventCapacity?) -> OperationError {
    let limit = capacity.map { " takes \($0.count) events at most and" } ?? ""
    return OperationError(.overflow, "The scheduler “\(scheduler)”\(limit) had no room: the event was not run.")
  }

  /// - Parameter circle: Who waits for the next one, the last for the first.
  static func waitCycle(_ circle: [SerialScheduler]) -> OperationError {
    let names = circle.map { "“\($0.name)”" }
    return OperationError(
      .waitCycle,
      "\(names[0]) would wait for ever: it waits for \(names.dropFirst().joined(separator: ", which waits for "))."
    )
  }

  static func waitTimedOut(_ scheduler: String, after timeout: Duration, hasBegun: Bool) -> OperationError {
    let state = hasBegun ? "is still at it" : "had not begun, and will not run it"
    return OperationError(
      .timedOut,
      "Waiting for the scheduler “\(scheduler)” took longer than \(timeout): it \(state)."
    )
  }
}
