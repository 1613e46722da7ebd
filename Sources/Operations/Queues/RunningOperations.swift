extension OperationContainer {
  /// Runs an operation with everything that it waits for, and waits until it has finished, without holding a thread.
  ///
  /// The method adds the operation and, as `addGraph` does, every ``AsyncOperation`` that it depends on and that is in no
  /// queue or group. Add plain Foundation dependencies separately.
  ///
  /// Cancelling the task cancels the operation, and not its dependencies, because other operations may wait for them.
  /// The call returns at once, and the operation leaves a queue when it has ended, or when the queue starts it. In a
  /// cancelled task, the operation finishes at once, and nothing is added.
  ///
  /// The wait counts as one of the operation for which the task works, as for ``AsyncOperation/completed()``.
  ///
  /// - Precondition: As for `addOperation`.
  /// - Throws: The error that ``AsyncOperation/completed()`` throws.
  public func run<O: AsyncOperation>(_ operation: O) async throws {
    await runToEnd(operation)
    // The cancellation may have finished the operation with an error of its own.
    try await operation.completed()
  }

  /// Runs an operation and waits until it has finished, or until the cancellation of the task.
  private func runToEnd(_ operation: AsyncOperation) async {
    // Before the operation is added, because a task that has begun can be raised only from macOS 26 on.
    operation.escalatePriority(to: Task.currentPriority)
    if Task.isCancelled, operation.isFree { return operation.cancelEvenIfUnused() }
    addWithDependencies(operation, for: currentWork)
    do {
      try await operation.awaitEnd(onCancel: { operation.cancel() })
    } catch let error as OperationError {
      operation.refuse(with: error)
    } catch {}
  }

  /// Runs an operation with everything that it waits for, and waits for its value, without holding a thread.
  ///
  /// ```swift
  /// let words = try await queue.run(download.map { $0.split(separator: " ").count })
  /// ```
  ///
  /// The dependencies are added, and cancellation and errors work, as with the method for an operation without a value.
  @discardableResult
  public func run<O: OutputOperation>(_ operation: O) async throws -> O.Output {
    try await run(operation as AsyncOperation)
    return try operation.outcome.get()
  }

  /// Without the requirement of the protocol, which the program would look up when it runs.
  private func value<T>(of operation: ResultOperation<T>) async throws -> T {
    await runToEnd(operation)
    return try await operation.value
  }

  /// Runs a synchronous closure as an operation, on a thread of the queue or the group, and returns its value.
  ///
  /// ```swift
  /// let words = try await queue.run {
  ///   try String(contentsOf: file, encoding: .utf8).split(separator: " ")
  ///     .count
  /// }
  /// ```
  ///
  /// The compiler selects this method for a closure without `await`, so a closure that blocks never blocks Swift's
  /// cooperative threads. The closure has access to the task-local values of the calling task.
  ///
  /// Cancelling the task cancels the operation. A closure that has started runs to its end. In the closure,
  /// `Task.isCancelled` and `Task.checkCancellation()` report whether the operation has been cancelled.
  ///
  /// - Throws: The error of `body`, or `CancellationError` if the operation was cancelled without another error.
  public func run<T: Sendable>(
    _ body: @escaping @Sendable () throws -> T,
    file: StaticString = #fileID,
    line: UInt = #line
  ) async throws -> T {
    try await value(of: ResultOperation(in: TaskContext(), EventOrigin(file: file, line: line), body))
  }

  /// Runs an asynchronous closure as an operation, in a task, and returns its value.
  ///
  /// ```swift
  /// let page = try await queue.run { try await session.data(from: url).0 }
  /// ```
  ///
  /// The compiler selects this method for a closure with `await`. The closure occupies a slot and no
  /// thread, as a ``TaskOperation`` does, and has access to the task-local values of the calling task. Cancelling the
  /// calling task cancels the closure's task. The method throws what that for a synchronous closure throws.
  public func run<T: Sendable>(
    _ body: @escaping @Sendable () async throws -> T,
    file: StaticString = #fileID,
    line: UInt = #line
  ) async throws -> T {
    try await value(of: TaskOperation(body, file: file, line: line))
  }

  /// Adds a synchronous closure as an operation, and returns the operation, which runs on a thread of the queue or the group.
  ///
  /// ```swift
  /// let index = queue.addTask("index") { try Index(of: folder) }
  /// ```
  ///
  /// As with `run`, the compiler selects this method for a closure without `await`.
  ///
  /// The name appears in error messages, reports and traces. The closure is called at most once, and its error is the
  /// operation's error.
  @discardableResult
  public func addTask<T: Sendable>(
    _ name: String? = nil,
    _ body: @escaping @Sendable () throws -> T,
    file: StaticString = #fileID,
    line: UInt = #line
  ) -> ResultOperation<T> {
    add(ResultOperation(in: TaskContext(), EventOrigin(file: file, line: line), body), name)
  }

  /// Adds an asynchronous closure as an operation, which runs in a task, and returns the operation.
  ///
  /// ```swift
  /// queue.addTask("upload") { try await session.upload(photo) }
  /// ```
  ///
  /// The closure has access to the task-local values of the calling task. It is cancelled with the operation only.
  @discardableResult
  public func addTask<T: Sendable>(
    _ name: String? = nil,
    _ body: @escaping @Sendable () async throws -> T,
    file: StaticString = #fileID,
    line: UInt = #line
  ) -> TaskOperation<T> {
    add(TaskOperation(body, file: file, line: line), name)
  }

  private func add<O: AsyncOperation>(_ operation: O, _ name: String?) -> O {
    if let name { operation.name = name }
    add(operation)
    return operation
  }
}
