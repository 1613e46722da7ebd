import Foundation

/// Cancelling an operation and everything inside it, without recursion, because groups can be nested to any depth.
extension AsyncOperation {
  /// Whether `cancel()` finishes the operation while it executes. False by default.
  ///
  /// If true, the operation finishes right after ``didCancel()``, which frees its slot in the queue. The work may
  /// continue, but its later calls to `finish` have no effect, as after a timeout. A group drains its members, and
  /// finishes without waiting for them: see ``GroupOperation/drained()``.
  public final var finishesWhenCancelled: Bool {
    get { core.withLock { $0.extras?.finishesWhenCancelled ?? false } }
    set { core.withLock { $0.makeExtras().finishesWhenCancelled = newValue } }
  }

  /// Cancels the operation, unless it is executing and `unlessStarted` is set, and everything inside it. If a supervisor is
  /// given, only its member is cancelled. Returns whether the call had an effect.
  @discardableResult
  final func cancel(
    _ reason: FailureReport?,
    as decision: OperationLifecycle.Decision = .cancellation,
    unlessStarted: Bool = false,
    in supervisor: OperationSupervisor? = nil
  ) -> Bool {
    guard let begun = beginCancelling(reason, as: decision, unlessStarted: unlessStarted, in: supervisor) else {
      return false
    }
    begun.reachMembers()
    return true
  }

  /// Cancels operations that wait for each other. All are marked before the first can finish and another execute.
  static func cancel(_ operations: [(operation: AsyncOperation, error: OperationError)], plain: [Operation]) {
    let begun = operations.compactMap { $0.beginCancelling(FailureReport([$1])) }
    for operation in plain { operation.cancelAsMember() }
    for cancellation in begun { cancellation.reachMembers() }
  }

  private struct Cancellation {
    let operation: AsyncOperation
    let interruption: OperationLifecycle.Interruption
    var members: ArraySlice<Operation>
    let task: Task<Void, Never>?
    let membership: (supervisor: OperationSupervisor, wasNotReady: Bool)?

    /// Each cancellation ends after those of its members.
    func reachMembers() {
      var path = [self]
      while let last = path.indices.last {
        guard let next = path[last].members.popFirst() else {
          let cancellation = path.removeLast()
          cancellation.operation.end(cancellation)
          continue
        }
        if let own = next as? AsyncOperation {
          let supervisor = path[last].operation.engineOfMembers
          if let inside = own.beginCancelling(nil, in: supervisor) { path.append(inside) }
        } else {
          next.cancelAsMember()
        }
      }
    }
  }

  /// Marks the operation and notifies its observers. The caller must continue the cancellation, if there is one.
  private func beginCancelling(
    _ reason: FailureReport?,
    as decision: OperationLifecycle.Decision = .cancellation,
    unlessStarted: Bool = false,
    in supervisor: OperationSupervisor? = nil
  ) -> Cancellation? {
    let (interruption, observers, membership, permit, task, inner, trace) = core.withLock { core in
      let isElsewhere = supervisor != nil && core.supervisor !== supervisor
      let interruption = isElsewhere ? nil : core.lifecycle.cancel(reason, as: decision, unlessStarted: unlessStarted)
      let membership = interruption == nil ? nil : core.takeCancelledMember()
      let extras = core.extras
      return (interruption, core.observers, membership, extras?.permit, extras?.task, extras?.inner, core.trace)
    }
    guard let interruption else { return nil }
    trace?.send(.cancelled)
    Trampoline.isolate { for observer in observers { observer.didCancel?(self) } }
    permit?.operationWasCancelled()
    return Cancellation(
      operation: self,
      interruption: interruption,
      members: (inner.map { [$0] } ?? engineOfMembers?.takeMembersToCancel() ?? [])[...],
      task: task,
      membership: membership
    )
  }

  private func end(_ cancellation: Cancellation) {
    engineOfMembers?.membersWereCancelled()
    cancellation.task?.cancel()
    if cancellation.interruption == .execution { Trampoline.isolate { didCancel() } }
    super.cancel()
    if let (supervisor, wasNotReady) = cancellation.membership {
      supervisor.memberWasCancelled(self, wasNotReady: wasNotReady)
    }
    switch cancellation.interruption {
    case .start: break
    case .evaluation: finishUnexecuted()
    case .execution: if finishesWhenCancelled { finishNow() }
    }
  }
}
