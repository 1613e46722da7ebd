public import Foundation

extension OperationQueue {
  /// Runs one operation, such as the refresh of a token, for all callers that request it while it is in flight.
  ///
  /// ```swift
  /// let token = try await queue.run(sharing: "refresh token") { RefreshToken(session) }
  /// ```
  ///
  /// The first caller makes the operation, which runs in this queue and holds the key exclusively. See
  /// ``AsyncOperation/exclusive(_:policy:in:)-(ExclusivityKey...,_,_)``. Later callers receive the outcome of the same
  /// operation. When it has finished or been cancelled, the next caller starts a new operation. A holder of the key, and
  /// work for which the operation waits, receive ``OperationError/Code/waitCycle``.
  ///
  /// A caller whose task is cancelled returns at once with a `CancellationError`, and the operation keeps running for
  /// the other callers. If the last caller is cancelled, it cancels the operation, and returns when that has finished.
  ///
  /// - Parameters:
  ///   - key: The key that the callers share. One key must always produce values of one type.
  ///   - domain: The domain of the key.
  ///   - make: Makes a new operation that is in no queue or group. Called by the first caller.
  /// - Throws: The errors of ``AsyncOperation/completed()``.
  public func run<T: Sendable>(
    sharing key: ExclusivityKey,
    in domain: ExclusivityDomain = .shared,
    _ make: @escaping @Sendable () -> ResultOperation<T>
  ) async throws -> T {
    try await runShared(under: key, in: domain) { AnyOutputOperation(make()) }
  }

  /// Runs an operation of any kind, including a group, for all callers that request it while it is in flight.
  ///
  /// - Throws: The errors of ``AsyncOperation/completed()``.
  @_disfavoredOverload
  public func run(
    sharing key: ExclusivityKey,
    in domain: ExclusivityDomain = .shared,
    _ make: @escaping @Sendable () -> AsyncOperation
  ) async throws {
    try await runShared(under: key, in: domain) { AnyOutputOperation(anyOperation: make()) }
  }

  private func runShared<T: Sendable>(
    under key: ExclusivityKey,
    in domain: ExclusivityDomain,
    _ make: @Sendable () -> AnyOutputOperation<T>
  ) async throws -> T {
    try Task.checkCancellation()
    let (run, caller): (SharedRun<T>, Int) = domain.enterRun(sharing: key)
    return try await withTaskCancellationHandler {
      if caller == 0 {
        let work = make()
        let (operation, outcome) = (work.operation, work.outcome)
        if !run.begin(operation) { operation.cancel() }
        operation.whenFinished { [unowned operation] in
          domain.sharedRuns.withLock { runs in
            if runs[key] === run { runs[key] = nil }
            runs.giveBackRoom()
          }
          run.end(with: outcome(operation))
        }
        addWithDependencies(operation.exclusive(key, in: domain))
        run.addition.start()
      }
      return try await run.wait(caller)
    } onCancel: {
      run.cancel(caller)
    }
  }
}

extension ExclusivityDomain {
  /// Adds a caller to the run under this key, or to a new run if there is none.
  fileprivate func enterRun<T: Sendable>(sharing key: ExclusivityKey) -> (SharedRun<T>, caller: Int) {
    while true {
      let current = sharedRuns.withLock { $0[key] }
      if let current {
        guard let run = current as? SharedRun<T> else {
          misuse("The key \(key.quoted) is shared by runs of another type than \(T.self): \(current). Use another key.")
        }
        if let caller = run.enter() { return (run, caller) }
      }
      let new = SharedRun<T>()
      let isNew = sharedRuns.withLock { runs in
        if runs[key] !== current { return false }
        runs[key] = new
        return true
      }
      if isNew { return (new, 0) }
    }
  }
}

/// One operation and the callers that wait for its outcome.
final class SharedRun<Output: Sendable>: Sendable {
  typealias Continuation = CheckedContinuation<Output, any Error>

  enum Phase {
    /// The first caller has entered and makes the operation.
    case starting
    case running(AsyncOperation)
    /// All callers have been cancelled. The last one waits for the end of the operation.
    case abandoned
    case ended(Result<Output, any Error>)

    var operation: AsyncOperation? { if case .running(let operation) = self { operation } else { nil } }
  }

  struct State {
    var phase = Phase.starting
    /// The callers. One that does not wait yet has no continuation. The first one makes the operation.
    var callers: [Int: Continuation?] = [0: nil]
    var nextCaller = 1
  }

  let state = Locked(State())
  /// Finishes when the operation has been added, and shows what it waits for.
  let addition = AsyncOperation()

  /// Adds a caller, and returns its number. Nil means that the run is about to end, so the caller must start another.
  func enter() -> Int? {
    if let running = state.withLock({ $0.phase.operation }), running.isFinished || running.isCancelled { return nil }
    return state.withLock { state in
      switch state.phase {
      case .abandoned, .ended: return nil
      case .starting, .running: break
      }
      defer { state.nextCaller += 1 }
      state.callers[state.nextCaller] = .some(nil)
      return state.nextCaller
    }
  }

  /// Each caller must call this method once. One that would wait forever is refused alone.
  func wait(_ caller: Int) async throws -> Output {
    if caller > 0 { await addition.finished() }
    let wait = state.withLock { $0.phase.operation }.flatMap { TaskWait.begin(.operation($0)) }
    defer { wait?.end() }
    return try await lendingPriority(to: escalateOperation) {
      try await withCheckedThrowingContinuation { continuation in
        let result = state.withLock { state -> Result<Output, any Error>? in
          if case .ended(let result) = state.phase { return result }
          guard state.callers[caller] != nil else { return .failure(CancellationError()) }
          state.callers[caller] = continuation
          return nil
        }
        if let result { continuation.resume(with: result) }
      }
    }
  }

  @Sendable private func escalateOperation(to priority: TaskPriority) {
    state.withLock { $0.phase.operation }?.escalatePriority(to: priority)
  }

  /// Removes a caller whose task was cancelled. If the caller is the last one, it stays and cancels the operation.
  func cancel(_ caller: Int) {
    let (continuation, operation) = state.withLock { state -> (Continuation?, AsyncOperation?) in
      if state.callers[caller] == nil { return (nil, nil) }
      if state.callers.count > 1 { return (state.callers.removeValue(forKey: caller) ?? nil, nil) }
      defer { state.phase = .abandoned }
      return (nil, state.phase.operation)
    }
    continuation?.resume(throwing: CancellationError())
    operation?.cancel()
  }

  /// Sets the operation of the run, and returns whether a caller still waits.
  func begin(_ operation: AsyncOperation) -> Bool {
    state.withLock { state in
      guard case .starting = state.phase else { return false }
      state.phase = .running(operation)
      return true
    }
  }

  func end(with result: Result<Output, any Error>) {
    let (callers, phase) = state.withLock { state in
      defer { (state.phase, state.callers) = (.ended(result), [:]) }
      return (state.callers.values, state.phase)
    }
    for continuation in callers { continuation?.resume(with: result) }
    withExtendedLifetime(phase) {}
  }
}
