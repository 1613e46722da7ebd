import Foundation

/// Holds keys while `body` runs in the calling task, without an operation.
///
/// ```swift
/// try await withKeys(.exclusive("database"), .limited("disk", to: 2)) {
///   try await store.save(document)
/// }
/// ```
///
/// The task waits in the same wait queues as operations, by its priority and then by its arrival, and takes all keys
/// together. It lends a priority above the default to the holders of the keys, and to the next holders while it waits.
/// `body` runs in the caller's isolation, and need not be `Sendable`. The keys are released when it returns or throws.
///
/// ## Cancellation
///
/// Cancelling the task while it waits ends the wait at once with a `CancellationError`. Cancelling it later is visible to
/// `body`, which keeps the keys until it returns. So does a `body` whose keys are requested with
/// ``ExclusivityPolicy/replace``.
///
/// ## Nesting
///
/// What `body` runs with `run`, `withKeys` or `withSlot`, also in child tasks, may use the keys of the task, as the
/// members of a group do. A detached task may not. What still uses the keys when `body` ends, for example in a task
/// made with `Task { }`, keeps them until it ends, and the caller continues at once. A claim inside `body` that is
/// stronger than the task's own, such as `exclusive` inside `shared`, fails at once.
///
/// - Parameters:
///   - claims: The claims. Without claims, `body` runs at once, unless the task is cancelled.
///   - domain: The domain of the keys.
///   - waitLimit: The longest time to wait for the keys. Then the method throws an error with the code
///     ``OperationError/Code/expired``, which names the holders. With a limit of zero, it tries once without waiting.
///   - name: The name of the holder in errors, reports and lists. The default is the calling function and line.
///   - clock: The clock that measures the wait limit and the interval of a throttled key. The default is a `ContinuousClock`.
///   - function: The calling function, for the name.
///   - line: The calling line, for the name.
///   - isolation: The isolation of the caller.
///   - body: The code that needs the keys.
/// - Throws: The error of `body`, a `CancellationError`, or an ``OperationError``: with the code
///   ``OperationError/Code/waitCycle`` if the wait can never end (see <doc:DebuggingStalls>), or for a stronger claim.
public func withKeys<R>(
  _ claims: ExclusivityClaim...,
  in domain: ExclusivityDomain = .shared,
  waitLimit: Duration? = nil,
  name: String? = nil,
  clock: any Clock<Duration> = ContinuousClock(),
  function: StaticString = #function,
  line: UInt = #line,
  isolation: isolated (any Actor)? = #isolation,
  _ body: () async throws -> R
) async throws -> R {
  let keys = TaskKeys([KeyClaim](claims, in: domain), clock, name, function, line)
  try Task.checkCancellation()
  let wait = TaskWait.begin(.keys(keys))
  defer { wait?.end() }
  let holdsKey = KeyRegistry.arriveEarly(keys)
  if holdsKey != true { try await keys.take(within: waitLimit, hasArrived: holdsKey != nil) }
  defer { KeyRegistry.release(keys) }
  return try await $currentWork.withValue(keys, operation: body)
}

final class TaskKeys: KeyClaimant, @unchecked Sendable {
  private let taskClock: any Clock<Duration>
  private let givenName: String?
  private let function: StaticString
  private let line: UInt
  /// The outcome of the wait for the keys. Nil until the wait has ended. Guarded by the lock of the registry.
  private var outcome: Result<Void, any Error>?
  /// Resumes the task if it was suspended. Constant once the wait has ended, when the caller of the table resumes the task.
  private var resume: Waiter?
  /// When the task began to wait. Nil if its key was free.
  var began: CoarseTime?

  init(_ claims: [KeyClaim], _ clock: any Clock<Duration>, _ name: String?, _ function: StaticString, _ line: UInt) {
    taskClock = clock
    givenName = name
    self.function = function
    self.line = line
    super.init(claims, caller: currentWork)
    if let obstacle = claims.obstacle { misuse("\(quotedName) \(obstacle)") }
  }

  override var name: String? { givenName ?? "\(function), line \(line)" }

  override var clock: any Clock<Duration> { taskClock }

  nonisolated(nonsending) func take(within limit: Duration?, hasArrived: Bool) async throws {
    let priority = hasArrived ? .medium : Task.currentPriority
    if !hasArrived {
      began = .now
      let holdsKeys = KeyRegistry.change { table, effects in
        let (outer, rank) = (table.tickets(around: self), priority.queuePriority.rawValue)
        table.enter(self, inside: outer, priority: rank, lent: priority.lent, &effects)
        return outcome != nil
      }
      if holdsKeys { return }
    }
    let timer = limit.map { _ in ClockTimer() }
    defer { timer?.cancel() }
    if let limit, limit > .zero {
      timer?.start(after: limit, on: clock, isTimeout: true) { [weak self] in self?.expire(after: limit) }
    } else if let limit {
      expire(after: limit)
    }
    let escalate = { @Sendable [self] (new: TaskPriority) in
      if new != priority { priorityDidChange(to: new.queuePriority, lent: new.lent) }
    }
    await lendingPriority(to: escalate) {
      await withTaskCancellationHandler {
        await withCheckedContinuation { continuation in
          let isOver = KeyRegistry.withLock {
            if outcome == nil { resume = { continuation.resume() } }
            return outcome != nil
          }
          if isOver { continuation.resume() }
        }
      } onCancel: {
        fail(with: CancellationError())
      }
    }
    try outcome?.get()
  }

  var isWaiting: Bool { KeyRegistry.withLock { outcome == nil } }

  override func didTakeKeys() { if outcome == nil { outcome = .success(()) } }

  override func call(isAnswered: Bool) { resume?() }

  /// Has no effect on a task that holds its keys.
  override func cancel(with error: OperationError?) { fail(with: error ?? CancellationError()) }

  private func expire(after limit: Duration) {
    fail(with: OperationError.expired(quotedName, after: limit, waitingFor: awaited))
  }

  /// Ends the wait, unless it has ended.
  private func fail(with error: any Error) {
    let resume = KeyRegistry.change { table, effects -> Waiter? in
      if outcome != nil { return nil }
      outcome = .failure(error)
      if let ticket { table.leave(ticket, &effects) }
      return self.resume
    }
    resume?()
  }
}
