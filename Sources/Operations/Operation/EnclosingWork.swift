/// Work that other operations run inside, which may use its keys.
protocol EnclosingWork: AnyObject, Sendable {
  /// The work of the task that runs this work, the group or operation around it, and the claimant of its keys.
  var surroundings: (caller: (any EnclosingWork)?, outer: AsyncOperation?, keyClaimant: KeyClaimant?) { get }
  /// Accesses what tasks of this work wait for, under its lock. Nil if the work is over.
  func withAwaited<Result>(_ body: (inout [AnyObject]) -> Result) -> Result?
}

extension EnclosingWork {
  /// The work around this work, innermost first, and the claimants of its keys.
  var enclosing: [(work: any EnclosingWork, keyClaimant: KeyClaimant?)] {
    var found: [(work: any EnclosingWork, keyClaimant: KeyClaimant?)] = []
    // The groups of operations that have a caller as well. Such a path can lead to work that was found before.
    var branches: [any EnclosingWork] = []
    var isBranch = false
    var next: (any EnclosingWork)? = self
    while let work = next ?? branches.popLast() {
      if next == nil { isBranch = true }
      next = nil
      if isBranch, found.contains(where: { $0.work === work }) { continue }
      let (caller, outer, keyClaimant) = work.surroundings
      if work !== self { found.append((work, keyClaimant)) }
      if let outer, caller != nil { branches.append(outer) }
      next = caller ?? outer
    }
    return found
  }

  /// This work and that around it, up to an operation that has ended, which does not wait for what its tasks still do.
  var awaiting: [(work: any EnclosingWork, keyClaimant: KeyClaimant?)] {
    let all = [(work: self as any EnclosingWork, keyClaimant: surroundings.keyClaimant)] + enclosing
    return Array(all.prefix { ($0.work as? AsyncOperation)?.core.withLock { $0.lifecycle.phase.isOver } != true })
  }

  /// Records what a task of this work waits for, so that reports and other waits include it.
  func beginAwaiting(_ awaited: AnyObject) { _ = withAwaited { $0.append(awaited) } }

  func endAwaiting(_ awaited: AnyObject) {
    let former = withAwaited { list in list.firstIndex { $0 === awaited }.map { list.remove(at: $0) } }
    withExtendedLifetime(former) {}
  }

  var around: [AsyncOperation] { awaiting.compactMap { $0.work as? AsyncOperation } }
}

/// The work that the current task does. Inherited by child tasks.
@TaskLocal var currentWork: (any EnclosingWork)?

extension AsyncOperation: EnclosingWork {
  final var surroundings: (caller: (any EnclosingWork)?, outer: AsyncOperation?, keyClaimant: KeyClaimant?) {
    core.withLock { ($0.extras?.caller, $0.outer, $0.turn) }
  }

  /// Makes the operation a part of the work that waits for it.
  final func belong(to caller: (any EnclosingWork)?) {
    if let caller { core.withLock { $0.makeExtras().caller = caller } }
  }

  final func withAwaited<Result>(_ body: (inout [AnyObject]) -> Result) -> Result? {
    core.withLock { $0.lifecycle.phase.isOver ? nil : body(&$0.makeExtras().awaited) }
  }

  final var awaitedKeys: [TaskKeys] { core.withLock { $0.extras?.awaited ?? [] }.compactMap { $0 as? TaskKeys } }
}
