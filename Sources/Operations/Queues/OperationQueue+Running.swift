public import Foundation

extension OperationQueue {
  /// Adds an `AsyncOperation`.
  ///
  /// Unlike Foundation's method, it loses no wake-up on Linux if the last dependency finishes at this moment.
  ///
  /// - Precondition: The operation has not been started and is in no queue or group. The package cannot detect that
  ///   Foundation's own methods added the operation to a queue. In that case, Foundation traps with its own message.
  public func addOperation(_ operation: AsyncOperation) {
    if operation.claimIfFree(for: self) { return addClaimed(operation) }
    let isClaimed = operation.core.withLock { $0.queue === self && $0.lifecycle.phase.isPending }
    guard isClaimed, !operations.contains(where: { $0 === operation }) else { return operation.claim(for: self) }
    // An override of Foundation's `addOperation(_:)` has cast the operation and passed it to `super`. Foundation's
    // method for several operations does not call that override again.
    addOperations([operation], waitUntilFinished: false)
  }

  func addClaimed(_ operation: AsyncOperation) {
    // A rejected operation finishes at once, because the holder of its key may occupy the slot that it would wait for.
    guard operation.prepareForQueue() else { return operation.startCancelled() }
    addOperation(operation as Operation)
    operation.wasAdded(withSlots: operationsWithSlots)
  }

  /// Adds several operations at once, without waiting. Unlike Foundation's method, it can be called in a task.
  ///
  /// On Linux, this costs less than adding the operations one by one, because Foundation walks all waiting operations
  /// of the queue at every addition.
  ///
  /// - Precondition: As for a single operation. The package cannot detect that a plain Foundation operation is
  ///   already in a queue or group. Foundation traps in that case.
  public func addOperations(_ operations: [Operation]) {
    var plain: Set<ObjectIdentifier> = []
    for operation in operations {
      if let own = operation as? AsyncOperation {
        own.claim(for: self)
      } else if operation.isExecuting || operation.isFinished {
        misuse(operation.cannotBeAdded(because: "has been started"))
      } else if !plain.insert(ObjectIdentifier(operation)).inserted {
        misuse(operation.cannotBeAdded(because: "is in this call"))
      }
    }
    addClaimed(operations)
  }

  func addClaimed(_ operations: [Operation]) {
    let operations = operations.filter { operation in
      guard let own = operation as? AsyncOperation, !own.prepareForQueue() else { return true }
      own.startCancelled()
      return false
    }
    addOperations(operations, waitUntilFinished: false)
    lazy var withSlots = operationsWithSlots
    for case let own as AsyncOperation in operations { own.wasAdded(withSlots: withSlots) }
  }

  /// Adds an operation, and every `AsyncOperation` that it depends on directly or indirectly, to this queue.
  ///
  /// Operations that are already in a queue or group, or have been started, stay where they are, and what only they
  /// depend on is not added. Several graphs can share operations. The dependencies of a group's members are added as well.
  ///
  /// Add plain Foundation operations separately, because the package cannot detect whether they are in a queue, nor
  /// whether Foundation's own methods added an `AsyncOperation` to another one: use this package's methods instead.
  public func addGraph(endingIn last: AsyncOperation) {
    let dependencies = claimDependencies(of: last)
    let isNew = last.isFree && !operations.contains(where: { $0 === last }) && last.claimIfFree(for: self)
    addClaimed(dependencies + (isNew ? [last] : []))
  }

  /// Adds an operation, which must be free, and every free `AsyncOperation` that it depends on, as part of the same work.
  func addWithDependencies(_ operation: AsyncOperation, for work: Work? = nil) {
    let hasDependencies = operation.core.withLock { !$0.ledger.dependencies.isEmpty }
    let mayWait = hasDependencies || (operation as? GroupOperation)?.engine.membersMayWait == true
    let dependencies = mayWait ? claimDependencies(of: operation) : []
    operation.claim(for: self)
    operation.belong(to: work)
    if dependencies.isEmpty { return addClaimed(operation) }
    for case let own as AsyncOperation in dependencies { own.belong(to: work) }
    addClaimed(dependencies + [operation])
  }

  private func claimDependencies(of last: AsyncOperation) -> [Operation] {
    // Cancelled operations do not wait, but other operations may wait for their dependencies.
    let snapshot = WaitSnapshot(of: [last], scope: .free)
    let free = snapshot.nodes.indices.reversed().filter { !snapshot.isStart($0) }
      .compactMap { snapshot.nodes[$0].operation as? AsyncOperation }.filter { $0 !== last && $0.isFree }
    if free.isEmpty { return [] }
    let enqueued = Set(operations.map { ObjectIdentifier($0) })
    // Another thread may have just added an operation that two graphs share.
    return free.filter { !enqueued.contains(ObjectIdentifier($0)) && $0.claimIfFree(for: self) }
  }

  /// Runs an operation with everything that it waits for, and waits until it has finished, without holding a thread.
  ///
  /// The method adds the operation and, as ``addGraph(endingIn:)`` does, every `AsyncOperation` that it depends on and
  /// that is in no queue or group. Add plain Foundation dependencies separately.
  ///
  /// Cancelling the task cancels the operation, and not its dependencies, because other operations may wait for them.
  /// The call returns at once, and the operation leaves the queue when it has ended, or when the queue starts it. In a
  /// cancelled task, the operation finishes at once, and nothing is added.
  ///
  /// The wait counts as one of the operation for which the task works, as for ``AsyncOperation/completed()``.
  ///
  /// - Precondition: As for `addOperation`.
  /// - Throws: The error that ``AsyncOperation/completed()`` throws.
  public func run<O: AsyncOperation>(_ operation: O) async throws {
    // Before the operation is added, because a task that has begun can be raised only from macOS 26 on.
    operation.escalatePriority(to: Task.currentPriority)
    if Task.isCancelled, operation.isFree {
      operation.cancelEvenIfUnused()
      return try await operation.completed()
    }
    await withTaskCancellationHandler {
      addWithDependencies(operation, for: currentWork)
      do { try await operation.settled() } catch let error as OperationError { operation.refuse(with: error) } catch {}
    } onCancel: {
      operation.cancel()
    }
    // The cancellation may have finished the operation with an error of its own.
    try await operation.completed()
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

  /// Runs a synchronous closure as an operation of this queue, on a thread of the queue, and returns its value.
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
  public func run<T: Sendable>(_ body: @escaping @Sendable () throws -> T) async throws -> T {
    try await run(ResultOperation(in: TaskContext(), body))
  }

  /// Runs an asynchronous closure as an operation of this queue, in a task, and returns its value.
  ///
  /// ```swift
  /// let page = try await queue.run { try await session.data(from: url).0 }
  /// ```
  ///
  /// The compiler selects this method for a closure with `await`. The closure occupies a slot of the queue and no
  /// thread, as a ``TaskOperation`` does, and has access to the task-local values of the calling task. Cancelling the
  /// calling task cancels the closure's task. The method throws what that for a synchronous closure throws.
  public func run<T: Sendable>(_ body: @escaping @Sendable () async throws -> T) async throws -> T {
    try await run(TaskOperation(body))
  }

  /// Adds a synchronous closure as an operation, which runs on a thread of the queue, and returns the operation.
  ///
  /// ```swift
  /// let index = queue.addTask("index") { try Index(of: folder) }
  /// ```
  ///
  /// As with `run`, the compiler selects this method for a closure without `await`.
  ///
  /// - Parameters:
  ///   - name: The operation's name, for error messages, reports and traces.
  ///   - body: The closure, which is called at most once. Its error is the operation's error.
  @discardableResult
  public func addTask<T: Sendable>(
    _ name: String? = nil,
    _ body: @escaping @Sendable () throws -> T
  ) -> ResultOperation<T> {
    add(ResultOperation(in: TaskContext(), body), name)
  }

  /// Adds an asynchronous closure as an operation, which runs in a task, and returns the operation.
  ///
  /// ```swift
  /// queue.addTask("upload") { try await session.upload(photo) }
  /// ```
  ///
  /// The closure has access to the task-local values of the calling task. It is cancelled with the operation only.
  ///
  /// The parameters are those of the method for a synchronous closure.
  @discardableResult
  public func addTask<T: Sendable>(
    _ name: String? = nil,
    _ body: @escaping @Sendable () async throws -> T
  ) -> TaskOperation<T> {
    add(TaskOperation(body), name)
  }

  private func add<O: AsyncOperation>(_ operation: O, _ name: String?) -> O {
    if let name { operation.name = name }
    addOperation(operation)
    return operation
  }

  /// Waits until the queue is empty or the waiting task is cancelled, without holding a thread.
  ///
  /// The wait includes operations that are added meanwhile. An operation leaves its queue when it finishes, possibly
  /// before its observers are notified. To wait for the observers, wait for the operation itself. To wait in a cancelled
  /// task, for example to shut down, call the method in a task of its own.
  public func finished() async {
    while !Task.isCancelled {
      let operations = operations
      let unfinished = operations.filter { !$0.isFinished }
      // The queue lists those that have expired until it starts them.
      if operations.allSatisfy({ ($0 as? AsyncOperation)?.core.withLock { $0.hasExpired } == true }) { return }
      // Other threads are removing the finished operations from the queue.
      if unfinished.isEmpty { await Task.yield() }
      for operation in unfinished { await operation.finished() }
    }
  }
}
