import Foundation

/// One operation, and the callers that wait for its outcome.
final class SharedRun<Output: Sendable>: Sendable {
  private enum Caller {
    /// It has not begun to wait yet.
    case coming
    case waiting(CheckedContinuation<Output, any Error>)
  }

  private struct State {
    var operation: AsyncOperation?
    var callers: [Int: Caller] = [:]
    var nextCaller = 0
    /// Nobody wants it any more.
    var isAbandoned = false
    var result: Result<Output, any Error>?
  }

  private let state = Locked(State())

  /// How many wait for it. Nil if nobody can come any more.
  var callerCount: Int? { state.withLock { $0.isAbandoned || $0.result != nil ? nil : $0.callers.count } }

  /// Takes in a caller.
  ///
  /// - Returns: Its number, or nil if the run is coming to its end and the caller had better start another.
  func enter() -> Int? {
    let operation = state.withLock { $0.operation }
    if let operation, operation.isFinished || operation.isCancelled { return nil }
    return state.withLock { state in
      if state.isAbandoned || state.result != nil { return nil }
      defer { state.nextCaller += 1 }
      state.callers[state.nextCaller] = .coming
      return state.nextCaller
    }
  }

  /// Waits for the outcome. To be called once by each caller.
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

  /// A caller's task has been cancelled. If there are others it leaves; the last one stays, and cancels the operation.
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

  /// - Returns: Whether somebody still wants it.
  func begin(_ operation: AsyncOperation) -> Bool {
    state.withLock { state in
      state.operation = operation
      return !state.isAbandoned
    }
  }

  /// The operation has finished.
  func end(with result: Result<Output, any Error>) {
    let callers = state.withLock { state in
      defer { (state.operation, state.callers, state.result) = (nil, [:], result) }
      return state.callers.values
    }
    for case .waiting(let continuation) in callers { continuation.resume(with: result) }
  }
}
