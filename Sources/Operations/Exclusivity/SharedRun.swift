import Foundation

/// One operation and the callers that wait for its outcome.
final class SharedRun<Output: Sendable>: Sendable {
  private enum Caller {
    /// The caller has entered and does not wait yet.
    case entered
    case waiting(CheckedContinuation<Output, any Error>)
  }

  private struct State {
    var operation: AsyncOperation?
    var callers: [Int: Caller] = [:]
    var nextCaller = 0
    /// All callers have been cancelled.
    var isAbandoned = false
    var result: Result<Output, any Error>?
  }

  private let state = Locked(State())

  /// The number of callers. Nil if no further caller can enter.
  var callerCount: Int? { state.withLock { $0.isAbandoned || $0.result != nil ? nil : $0.callers.count } }

  /// Adds a caller.
  ///
  /// - Returns: Its number. Nil if the run is about to end, so the caller must start another one.
  func enter() -> Int? {
    let operation = state.withLock { $0.operation }
    if let operation, operation.isFinished || operation.isCancelled { return nil }
    return state.withLock { state in
      if state.isAbandoned || state.result != nil { return nil }
      defer { state.nextCaller += 1 }
      state.callers[state.nextCaller] = .entered
      return state.nextCaller
    }
  }

  /// Waits for the outcome. Each caller must call it once.
  func wait(_ caller: Int) async throws -> Output {
    try await withCheckedThrowingContinuation { continuation in
      let result = state.withLock { state -> Result<Output, any Error>? in
        if let result = state.result { return result }
        guard state.callers[caller] != nil else { return .failure(CancellationError()) }
        state.callers[caller] = .waiting(continuation)
        return nil
      }
      if let result { continuation.resume(with: result) }
    }
  }

  /// Removes a caller whose task was cancelled. The last caller stays and cancels the operation.
  func cancel(_ caller: Int) {
    let (left, operation) = state.withLock { state -> (Caller?, AsyncOperation?) in
      if state.result != nil || state.callers[caller] == nil { return (nil, nil) }
      if state.callers.count > 1 { return (state.callers.removeValue(forKey: caller), nil) }
      state.isAbandoned = true
      return (nil, state.operation)
    }
    if case .waiting(let continuation)? = left { continuation.resume(throwing: CancellationError()) }
    operation?.cancel()
  }

  /// - Returns: Whether a caller still waits.
  func begin(_ operation: AsyncOperation) -> Bool {
    state.withLock { state in
      state.operation = operation
      return !state.isAbandoned
    }
  }

  /// Resumes all callers with the outcome of the operation.
  func end(with result: Result<Output, any Error>) {
    let callers = state.withLock { state in
      defer { (state.operation, state.callers, state.result) = (nil, [:], result) }
      return state.callers.values
    }
    for case .waiting(let continuation) in callers { continuation.resume(with: result) }
  }
}
