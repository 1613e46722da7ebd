public import Foundation

extension OperationQueue {
  /// Runs an operation for all who ask for it while it is on its way: a login, say, or the refresh of a token.
  ///
  /// ```swift
  /// let token = try await queue.run(sharing: "refresh token") { RefreshToken(session) }
  /// ```
  ///
  /// The first caller makes the operation, in this queue and under the key, which excludes others as
  /// ``AsyncOperation/exclusive(_:policy:in:)-(ExclusivityKey...,_,_)`` does. Whoever asks before it has finished gets
  /// its outcome, too; the next caller after its end, or after it has been cancelled, starts a new one. What holds the
  /// key itself must not ask.
  ///
  /// A caller that is cancelled leaves at once with a `CancellationError`, and the operation to the others. The last
  /// one cancels it, and leaves when it has finished.
  ///
  /// - Parameters:
  ///   - key: What the callers share. One key always leads to values of one type.
  ///   - domain: Where the key means something.
  ///   - make: Makes the operation, which is in no queue or group, a new one each time. Called by the caller that
  ///     starts it.
  /// - Throws: What ``AsyncOperation/completed()`` throws.
  public func run<T: Sendable>(
    sharing key: ExclusivityKey,
    in domain: ExclusivityDomain = .shared,
    _ make: @escaping @Sendable () -> ResultOperation<T>
  ) async throws -> T {
    try await runShared(under: key, in: domain) { AnyOutputOperation(make()) }
  }

  /// Runs an operation of any kind, a group included, for all callers that request it while it is in flight.
  ///
  /// - Throws: What ``AsyncOperation/completed()`` throws.
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
    let (run, caller, isNew): (SharedRun<T>, Int, Bool) = domain.enterRun(sharing: key)
    return try await withTaskCancellationHandler {
      if isNew { start(run, make(), under: key, in: domain) }
      return try await run.wait(caller)
    } onCancel: {
      run.cancel(caller)
    }
  }

  private func start<T: Sendable>(
    _ run: SharedRun<T>,
    _ work: AnyOutputOperation<T>,
    under key: ExclusivityKey,
    in domain: ExclusivityDomain
  ) {
    let (operation, output) = (work.operation, work.output)
    if !run.begin(operation) { operation.cancel() }
    operation.whenSettled { [unowned operation] in
      domain.endRun(run, sharing: key)
      run.end(with: Result { try output(operation) })
    }
    addOperation(operation.exclusive(key, in: domain))
  }
}

extension ExclusivityDomain {
  /// Takes a caller into the run under this key, or into a new one if there is none.
  fileprivate func enterRun<T: Sendable>(sharing key: ExclusivityKey) -> (SharedRun<T>, caller: Int, isNew: Bool) {
    while true {
      let current = sharedRuns.withLock { $0[key] }
      if let current {
        guard let run = current as? SharedRun<T> else {
          misuse(
            "The key \(key.quoted) is shared by runs of another type: \(current), which cannot lead to a value of type "
              + "\(T.self). Use another key."
          )
        }
        if let caller = run.enter() { return (run, caller, false) }
      }
      let new = SharedRun<T>()
      guard let caller = new.enter() else { continue }
      let isNew = sharedRuns.withLock { runs in
        if runs[key] !== current { return false }
        runs[key] = new
        return true
      }
      if isNew { return (new, caller, true) }
    }
  }

  fileprivate func endRun(_ run: AnyObject, sharing key: ExclusivityKey) {
    sharedRuns.withLock { runs in
      if runs[key] === run { runs[key] = nil }
      runs.giveBackRoom()
    }
  }
}
