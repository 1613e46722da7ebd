extension OperationError {
  static func shutDown(_ scheduler: String) -> OperationError {
    OperationError(.shutDown, "The event was not run because the scheduler “\(scheduler)” has been shut down.")
  }

  static func overflow(_ scheduler: String, _ capacity: EventCapacity?) -> OperationError {
    let limit = capacity.map { " (capacity \($0.count))" } ?? ""
    return OperationError(.overflow, "The event was not run because the scheduler “\(scheduler)” is full\(limit).")
  }

  /// The error of a wait that would close a cycle.
  ///
  /// - Parameter cycle: The schedulers in order. Each waits for the next, and the first is also the last.
  static func waitCycle(_ cycle: [SerialScheduler]) -> OperationError {
    let names = cycle.map { "“\($0.name)”" }.joined(separator: " → ")
    return OperationError(
      .waitCycle,
      "Deadlock of schedulers that wait for each other: \(names). Await run(_:) instead."
    )
  }

  /// The error of a wait whose target might get no thread, because too many schedulers are blocked.
  static func tooManyWaits(from waiter: String?, for target: String, _ count: Int) -> OperationError {
    OperationError(
      .overflow,
      "The scheduler “\(waiter ?? "")” cannot wait for “\(target)” because \(count) schedulers already block in `wait` and no "
        + "thread may be left. Await `run` instead."
    )
  }

  static func waitTimedOut(_ scheduler: String, after timeout: Duration, hasBegun: Bool) -> OperationError {
    let state = hasBegun ? "The event is still running." : "The event had not begun and will not run."
    return OperationError(.timedOut, "Waiting for the scheduler “\(scheduler)” took longer than \(timeout). \(state)")
  }
}
