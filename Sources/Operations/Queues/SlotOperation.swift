import Foundation

extension OperationContainer {
  /// Runs `body` in the calling task while it occupies a slot of this queue or group and holds keys.
  ///
  /// ```swift
  /// try await queue.withSlot("upload", holding: .limited("server", to: 2)) {
  ///   try await upload(photo)
  /// }
  /// ```
  ///
  /// The task waits as an operation with these keys does: first for the keys, without a slot, then for the slot, with
  /// which it takes the keys. An operation with the name represents `body` in `operations`, in reports and in traces,
  /// and `finished()` waits for it. It has no errors: those of `body` are thrown to the caller, and are no failures of a group.
  /// In a group, the task waits until the group executes, and takes its turn as the first waiter that fits: see
  /// <doc:MutualExclusion>.
  ///
  /// `body` runs in the caller's isolation, and need not be `Sendable`. What it runs may use its keys, and keeps
  /// them if it outlasts `body`: see ``withKeys(_:in:waitLimit:name:clock:function:line:isolation:_:)``.
  ///
  /// Cancelling the task or the operation while it waits ends the wait at once with a `CancellationError`. A cancelled
  /// operation leaves a queue when the queue has a slot for it. Cancelling the task later is visible to `body`, which
  /// keeps the slot until it returns. Cancelling the operation later has no effect.
  ///
  /// - Parameters:
  ///   - name: The name of the operation. The default is the calling function and line.
  ///   - claims: The keys to hold.
  ///   - domain: The domain of the keys.
  ///   - waitLimit: The longest time to wait for the slot and the keys. Then the method throws an error with the code
  ///     ``OperationError/Code/expired``. With a limit of zero, it tries once without waiting.
  ///   - flow: The flow of the operation, which counts in a group: see ``AsyncOperation/flow``.
  ///   - function: The calling function, for the name.
  ///   - line: The calling line, for the name.
  ///   - isolation: The isolation of the caller.
  ///   - body: The code that needs the slot.
  /// - Throws: The error of `body`, a `CancellationError`, or an ``OperationError``: with the code
  ///   ``OperationError/Code/waitCycle`` if the wait can never end (see <doc:DebuggingStalls>), and with
  ///   ``OperationError/Code/shutDown`` if the group has finished.
  public func withSlot<R>(
    _ name: String? = nil,
    holding claims: ExclusivityClaim...,
    in domain: ExclusivityDomain = .shared,
    waitLimit: Duration? = nil,
    flow: ExclusivityKey? = nil,
    function: StaticString = #function,
    line: UInt = #line,
    isolation: isolated (any Actor)? = #isolation,
    _ body: () async throws -> R
  ) async throws -> R {
    try Task.checkCancellation()
    let priority = Task.currentPriority
    let make = { @Sendable in SlotOperation(name ?? "\(function), line \(line)", priority) }
    let work = currentWork
    // The work of the task, if there is any, waits for the operation.
    if work == nil, claims.isEmpty, flow == nil, let group = place.group,
      let slot = group.engine.takeSlot(of: group, make)
    {
      defer { group.engine.end(slot) }
      return try await $currentWork.withValue(slot) { try await body() }
    }
    let operation = make()
    operation.addClaims([KeyClaim](claims, in: domain), lends: true)
    if let waitLimit { operation.waitLimit = waitLimit }
    if let flow { operation.flow = flow }
    operation.belong(to: work)
    // The actor runs in this queue, as one on a scheduler does. On main it only uses the thread of the queue.
    if isolation != nil, self !== OperationQueue.main, OperationQueue.current === self {
      let reason = "would wait forever for a slot of its queue: its actor runs in it. Use another queue."
      throw OperationError(.waitCycle, "\(operation.quotedName) \(reason)")
    }
    return try await operation.hold(body) { add(operation) }
  }
}

private final class SlotOperation: AsyncOperation, @unchecked Sendable {
  /// Resumes the task that waits. Has no effect once the operation has begun or ended. Guarded by the lock of the core.
  private var resume: (@Sendable () -> Void)?

  init(_ name: String, _ priority: TaskPriority) {
    super.init()
    self.name = name
    // Before it is added, because a member that waits for a slot would be moved.
    if priority > .medium { queuePriority = priority.queuePriority }
  }

  override var beginsElsewhere: Bool { true }

  override var throwsToItsCaller: Bool { true }

  override func execute() { core.withLock { _ in exchange(&resume, with: {}) }?() }

  override func didFinish() { execute() }

  nonisolated(nonsending) func hold<R>(_ body: () async throws -> R, adding add: () -> Void) async throws -> R {
    let taskWait = TaskWait.begin(.operation(self))
    defer { taskWait?.end() }
    add()
    if core.withLock({ _ in resume == nil }) {
      await lendingPriority(to: escalatePriority) { await waitOrUnregister { wait($0) } }
      if Task.isCancelled { cancel() }
    }
    defer { finish() }
    if core.withLock({ !$0.lifecycle.canContinue }) { throw outcomeError ?? CancellationError() }
    return try await $currentWork.withValue(ownWork) { try await body() }
  }

  private func wait(_ resume: @escaping @Sendable () -> Void) -> (() -> Void)? {
    addObserver(OperationObserver(didCancel: { _ in resume() }))
    let isDue = core.withLock { core in
      defer { self.resume = self.resume ?? resume }
      return self.resume != nil || core.lifecycle.isCancelled
    }
    if isDue { resume() }
    return nil
  }
}
