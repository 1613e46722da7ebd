import Synchronization

/// What tasks work for: an operation, or the body of ``withKeys(_:in:waitLimit:name:clock:function:line:isolation:_:)``.
/// Work that runs inside other work may use its keys.
class Work: @unchecked Sendable {
  /// The work of the task that began this work. Guarded by the lock of the registry of keys.
  private final var caller: Work?
  /// The work of the group or the operation around this operation. Guarded as ``caller``.
  private final var outer: Work?
  private let isOver = Atomic(false)

  init(caller: Work? = nil) { self.caller = caller }

  /// Nil if the work has no keys.
  var claimant: KeyClaimant? { nil }

  /// Called when nothing can use the keys of this work any more. Others forget the work then.
  final func end() { isOver.store(true, ordering: .relaxed) }

  final func belong(to caller: Work) {
    KeyRegistry.withLock {
      caller.forgetEnded()
      self.caller = caller
    }
  }

  final func setOuter(_ operation: AsyncOperation?) {
    if let outer = operation?.core.withLock({ $0.work }) { KeyRegistry.withLock { self.outer = outer } }
  }

  /// Without this, each task of a chain in which one begins the next would retain all tasks before it.
  private final func forgetEnded() {
    while let ended = caller, ended.isOver.load(ordering: .relaxed), ended.outer == nil { caller = ended.caller }
  }

  // MARK: Under the lock of the registry

  final var isInsideOther: Bool { caller != nil || outer != nil }

  final var onlyCaller: Work? { outer == nil ? caller : nil }

  /// The claimants of the work around this work, innermost first.
  final var enclosing: some Sequence<KeyClaimant> {
    // The groups of operations that have a caller as well. Such a path can lead to work that was found before.
    var (next, branches, found) = (self as Work?, [Work](), Set<ObjectIdentifier>())
    let all = AnyIterator { () -> Work? in
      while let work = next ?? branches.popLast() {
        work.forgetEnded()
        next = nil
        if !found.isEmpty, !found.insert(ObjectIdentifier(work)).inserted { continue }
        next = work.caller ?? work.outer
        if let outer = work.outer, work.caller != nil {
          branches.append(outer)
          found.insert(ObjectIdentifier(work))
        }
        return work
      }
      return nil
    }
    return all.dropFirst().lazy.compactMap(\.claimant)
  }
}

/// The work that the current task does. Inherited by child tasks.
@TaskLocal var currentWork: Work?

extension AsyncOperation {
  /// Makes the operation a part of the work that waits for it.
  final func belong(to caller: Work?) {
    if let caller { core.withLock { $0.makeWork() }.belong(to: caller) }
  }

  /// The work of the operation's tasks. The operation has been started, or is about to enter the wait queues of its keys.
  final var ownWork: Work {
    let (work, outer) = core.withLock { ($0.makeWork(), $0.outer) }
    work.setOuter(outer)
    return work
  }
}
