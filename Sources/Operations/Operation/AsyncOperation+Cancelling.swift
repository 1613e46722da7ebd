import Foundation

/// Cancelling an operation and everything inside it, without recursion, because groups can be nested to any depth.
extension AsyncOperation {
  /// Whether `cancel()` finishes the operation while it executes. False by default.
  ///
  /// If true, the operation finishes right after ``didCancel()``, which frees its slot in the queue. The work may
  /// continue, but its later calls to `finish` have no effect, as after a timeout. A group drains its members, and
  /// finishes without waiting for them: see ``GroupOperation/drained()``. Members capture it as `weak`, not `unowned`.
  public final var finishesWhenCancelled: Bool {
    get { core.withLock { $0.extras?.finishesWhenCancelled ?? false } }
    set { core.withLock { $0.makeExtras().finishesWhenCancelled = newValue } }
  }

  /// Cancels the operation, in these phases and as a member of the engine's group. Returns whether that had an effect.
  @discardableResult
  final func cancel(
    _ reason: FailureReport?,
    as decision: OperationLifecycle.Decision = .cancellation,
    in engine: GroupEngine? = nil,
    where isIncluded: (OperationLifecycle.Phase) -> Bool = { _ in true }
  ) -> Bool {
    guard let cancellation = mark(reason, as: decision, in: engine, where: isIncluded) else { return false }
    AsyncOperation.announceAndEnd([cancellation])
    return true
  }

  /// Cancels the operation. One that was never added finishes.
  func cancelEvenIfUnused() {
    let isUnused = takePlaceIfFree()
    cancel()
    if isUnused { startCancelled() }
  }

  /// Ends the wait of an operation that would never start. In a queue, it finishes at once, because the slot in which it
  /// would finish may be a part of what it waits for.
  final func refuse(with error: OperationError) {
    guard cancel(FailureReport([error])), core.withLock({ $0.beginEarlyEnd() }) else { return }
    finishUnexecuted()
  }

  /// Cancels operations in one step: all, at any depth, are marked before one can finish and let another one execute.
  /// Returns the number of operations that were not cancelled before.
  @discardableResult
  static func cancelAll(
    _ operations: [AsyncOperation],
    in engine: GroupEngine? = nil,
    because reason: (AsyncOperation) -> FailureReport? = { _ in nil },
    where isIncluded: (OperationLifecycle.Phase) -> Bool = { _ in true }
  ) -> Int {
    announceAndEnd(operations.compactMap { $0.mark(reason($0), in: engine, where: isIncluded) })
  }

  /// Cancels the operations that do not work, and what does not work inside the others, at any depth, in one step. An
  /// operation that pauses does not work. Returns the number of cancelled operations, without those inside them.
  static func cancelWaiting(_ operations: [AsyncOperation], in engine: GroupEngine? = nil) -> Int {
    var rest = operations.map { (operation: $0, engine: engine) }
    var marked: [Cancellation] = []
    var index = 0
    while index < rest.count {
      let (operation, engine) = rest[index]
      index += 1
      if let cancellation = operation.mark(nil, in: engine, where: { $0 != .executing }) {
        marked.append(cancellation)
      } else if operation.isExecuting {
        rest += operation.members.map { ($0, operation.engineOfMembers) }
      }
    }
    return announceAndEnd(marked)
  }

  @discardableResult
  private static func announceAndEnd(_ marked: [Cancellation]) -> Int {
    // A plain operation may have been cancelled before, and its member not.
    let count = marked.map(\.operation).count { $0.represented === $0 || !$0.represented.isCancelled }
    // Each operation comes before its members, and its cancellation ends after theirs.
    var all: [Cancellation] = []
    let ends = postorder(
      from: marked,
      isNew: { _ in true },
      next: { cancellation in
        all.append(cancellation)
        let engine = cancellation.operation.engineOfMembers
        // Those that are added later are cancelled when they are added.
        let members = engine?.state.withLock { $0.takeMembers(toEnd: .cancel) } ?? []
        return (cancellation.inner + members).compactMap { $0.mark(in: engine) }
      }
    )
    for cancellation in all { cancellation.announce() }
    for cancellation in ends { cancellation.operation.end(cancellation) }
    return count
  }

  /// A cancellation that has been marked, and must reach the members and the work.
  private struct Cancellation {
    let operation: AsyncOperation
    let phase: OperationLifecycle.Phase
    let observers: [OperationObserver]
    let trace: [OperationFollower]
    let keys: KeyRequest?
    let task: Task<Void, Never>?
    let notice: OperationCore.WaitAction
    let inner: [AsyncOperation]

    func announce() {
      for follower in trace { follower.noteCancellation() }
      Trampoline.callUserCode { for observer in observers { observer.didCancel?(operation) } }
      if let keys { operation.leaveKeys(keys, forGood: true, unlessHeld: true) }
    }
  }

  /// Marks the operation. The caller must continue the cancellation, if there is one.
  private func mark(
    _ reason: FailureReport? = nil,
    as decision: OperationLifecycle.Decision = .cancellation,
    in engine: GroupEngine? = nil,
    where isIncluded: (OperationLifecycle.Phase) -> Bool = { _ in true }
  ) -> Cancellation? {
    core.withLock { core in
      if let engine, core.engine !== engine { return nil }
      let phase = core.lifecycle.phase
      guard isIncluded(phase), core.lifecycle.cancel(reason, as: decision) != nil else { return nil }
      return Cancellation(
        operation: self,
        phase: phase,
        observers: core.observers,
        trace: core.trace,
        keys: core.keys,
        task: core.task,
        notice: core.cancellationNotice(phase),
        inner: core.extras?.inner.map { [$0] } ?? []
      )
    }
  }

  private func end(_ cancellation: Cancellation) {
    if let plain = self as? PlainMember { plain.represented.cancelAsMember() }
    engineOfMembers?.membersWereCancelled()
    cancellation.task?.cancel()
    if cancellation.phase.isExecuting { Trampoline.callUserCode { didCancel() } }
    super.cancel()
    continueWait(cancellation.notice)
    switch cancellation.phase {
    case .suspended: finishUnexecuted()
    case .executing, .paused: if finishesWhenCancelled { finishBeforeMembers() }
    // The thread that starts, prepares or skips the operation ends it.
    case .pending, .preparing, .skipped: break
    case .ending, .finished: misuse("A cancellation counts only before the end of \(quotedName).")
    }
  }
}
