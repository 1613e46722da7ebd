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

  /// Cancels the operation and everything inside it, in the given phases and as a member of the group, if there is an
  /// engine. Returns whether the call had an effect.
  @discardableResult
  final func cancel(
    _ reason: FailureReport?,
    as decision: OperationLifecycle.Decision = .cancellation,
    in engine: GroupEngine? = nil,
    where isIncluded: (OperationLifecycle.Phase) -> Bool = { _ in true }
  ) -> Bool {
    let begun = beginCancelling(reason, as: decision, in: engine, where: isIncluded)
    begun?.reachMembers()
    return begun != nil
  }

  /// Cancels operations that wait for each other. All are marked before the first can finish and another execute.
  static func cancel(_ operations: [(operation: AsyncOperation, error: OperationError)]) {
    let begun = operations.compactMap { $0.beginCancelling(FailureReport([$1])) }
    for cancellation in begun { cancellation.reachMembers() }
  }

  /// Cancels the operations that do not work, and what does not work inside the others, at any depth. An operation that
  /// pauses does not work. Returns the number of operations that this call cancelled, without those inside them.
  static func cancelWaiting(_ operations: [AsyncOperation], in engine: GroupEngine? = nil) -> Int {
    var rest = operations.map { (operation: $0, engine: engine) }[...]
    var count = 0
    while let (operation, engine) = rest.popFirst() {
      let isNew = !operation.represented.isCancelled
      if operation.cancel(nil, in: engine, where: { $0 != .executing }) {
        if isNew { count += 1 }
      } else if operation.isExecuting {
        rest += operation.members.compactMap(\.asMember).map { ($0, operation.engineOfMembers) }
      }
    }
    return count
  }

  /// A cancellation that has been marked, and must reach the members and the work.
  private struct Cancellation {
    let operation: AsyncOperation
    let interruption: OperationLifecycle.Interruption
    let observers: [OperationObserver]
    let trace: OperationFollower?
    let turn: KeyRequest?
    let task: Task<Void, Never>?
    let notice: OperationCore.WaitAction
    var members: ArraySlice<Operation>

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
          let engine = path[last].operation.engineOfMembers
          if let inside = own.beginCancelling(nil, in: engine) { path.append(inside) }
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
    in engine: GroupEngine? = nil,
    where isIncluded: (OperationLifecycle.Phase) -> Bool = { _ in true }
  ) -> Cancellation? {
    let begun = core.withLock { core -> Cancellation? in
      if let engine, core.engine !== engine { return nil }
      let phase = core.lifecycle.phase
      guard let interruption = core.lifecycle.cancel(reason, as: decision, where: isIncluded) else {
        return nil
      }
      return Cancellation(
        operation: self,
        interruption: interruption,
        observers: core.observers,
        trace: core.trace,
        turn: core.turn,
        task: core.extras?.task,
        notice: core.cancellationNotice(phase),
        members: (core.extras?.inner.map { [$0] } ?? [])[...]
      )
    }
    guard var cancellation = begun else { return nil }
    cancellation.trace?.send(.cancelled)
    Trampoline.isolate { for observer in cancellation.observers { observer.didCancel?(self) } }
    cancellation.turn?.leave(.cancellation)
    cancellation.members += takeOperationsToCancel()
    return cancellation
  }

  private func end(_ cancellation: Cancellation) {
    engineOfMembers?.membersWereCancelled()
    cancellation.task?.cancel()
    if cancellation.interruption == .execution { Trampoline.isolate { didCancel() } }
    super.cancel()
    carryOut(cancellation.notice)
    switch cancellation.interruption {
    case .start: break
    case .suspension: finishUnexecuted()
    case .execution: if finishesWhenCancelled { finishNow() }
    }
  }
}
