extension OperationContainer {
  /// Runs one operation, such as the refresh of a token, for all callers that request it while it is in flight.
  ///
  /// ```swift
  /// let token = try await queue.run(sharing: "refresh token") { RefreshToken(session) }
  /// ```
  ///
  /// The first caller makes the operation, which runs in this queue or group and holds the key exclusively. See
  /// ``AsyncOperation/exclusive(_:policy:in:)-(ExclusivityKey...,_,_)``. Later callers receive the outcome of the same
  /// operation. When it has finished or been cancelled, the next caller starts a new operation. A holder of the key, and
  /// work for which the operation waits, receive ``OperationError/Code/waitCycle``.
  ///
  /// A caller whose task is cancelled returns at once with a `CancellationError`, and the operation keeps running for
  /// the other callers. The last caller that is cancelled cancels the operation.
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
    let (run, isFirst): (SharedRun<T>, Bool) = domain.enterRun(sharing: key)
    if isFirst {
      let work = make()
      run.state.withLock { $0.work = work }
      work.operation.whenFinished {
        domain.sharedRuns.withLock { runs in
          if runs[key] === run { runs[key] = nil }
          runs.giveBackRoom()
        }
      }
      addWithDependencies(work.operation.exclusive(key, in: domain))
      run.addition.start()
    }
    return try await run.wait()
  }
}

extension ExclusivityDomain {
  /// Adds a caller to the run under this key, or to a new run if there is none.
  fileprivate func enterRun<T: Sendable>(sharing key: ExclusivityKey) -> (SharedRun<T>, isFirst: Bool) {
    while true {
      let current = sharedRuns.withLock { $0[key] }
      if let current {
        guard let run = current as? SharedRun<T> else {
          misuse("The key \(key.quoted) is shared by runs of another type than \(T.self): \(current). Use another key.")
        }
        if run.enter() { return (run, false) }
      }
      let new = SharedRun<T>()
      let isNew = sharedRuns.withLock { runs in
        if runs[key] !== current { return false }
        runs[key] = new
        return true
      }
      if isNew { return (new, true) }
    }
  }
}

/// One operation, and the number of callers that wait for its outcome.
final class SharedRun<Output: Sendable>: Sendable {
  struct State {
    /// Nil while the first caller makes the operation.
    var work: AnyOutputOperation<Output>?
    /// When the last one leaves, it cancels the operation.
    var callers = 1
  }

  let state = Locked(State())
  /// Finishes when the operation has been added, and shows what it waits for.
  let addition = AsyncOperation()

  /// Adds a caller, which must wait. Returns false if the run is about to end, so that the caller must start another.
  func enter() -> Bool {
    if let running = state.withLock({ $0.work?.operation }), running.isFinished || running.isCancelled { return false }
    return state.withLock { state in
      if state.callers > 0 { state.callers += 1 }
      return state.callers > 0
    }
  }

  /// Each caller must call this method once. One that is cancelled, or would wait forever, leaves alone.
  func wait() async throws -> Output {
    await addition.finished()
    let result: Result<Output, any Error>
    do {
      guard let work = state.withLock({ $0.work }) else { throw CancellationError() }
      try await work.operation.awaitEnd()
      result = work.result
    } catch {
      let abandoned = state.withLock { state in
        state.callers -= 1
        return state.callers == 0 ? state.work?.operation : nil
      }
      abandoned?.cancel()
      throw error
    }
    return try result.get()
  }
}
