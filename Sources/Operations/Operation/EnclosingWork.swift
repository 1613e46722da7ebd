/// Work that other operations run inside, which may use its keys.
protocol EnclosingWork: AnyObject, Sendable {
  /// The work of the task that runs this work, and the group or the operation that this work is inside.
  var surroundings: (caller: (any EnclosingWork)?, outer: AsyncOperation?) { get }
  /// The claimant of its keys, of a higher layer.
  var keyClaimant: AnyObject? { get }
}

extension EnclosingWork {
  /// The work around this work, innermost first.
  var enclosing: [any EnclosingWork] {
    var found: [any EnclosingWork] = []
    // The groups of operations that have a caller as well. Such a path can lead to work that was found before.
    var branches: [any EnclosingWork] = []
    var isBranch = false
    var next: (any EnclosingWork)? = self
    while let work = next ?? branches.popLast() {
      if next == nil { isBranch = true }
      next = nil
      if isBranch, found.contains(where: { $0 === work }) { continue }
      if work !== self { found.append(work) }
      let (caller, outer) = work.surroundings
      if let outer, caller != nil { branches.append(outer) }
      next = caller ?? outer
    }
    return found
  }
}

enum CurrentWork {
  /// The work that the current task does. Inherited by child tasks.
  @TaskLocal static var innermost: (any EnclosingWork)?
}

extension AsyncOperation: EnclosingWork {
  final var surroundings: (caller: (any EnclosingWork)?, outer: AsyncOperation?) {
    let (caller, supervisor) = core.withLock { ($0.extras?.caller, $0.supervisor) }
    return (caller, supervisor?.supervisedGroup)
  }

  final var keyClaimant: AnyObject? { core.withLock { $0.extras?.turn } }

  /// Makes the operation a part of the work that waits for it.
  final func belong(to caller: (any EnclosingWork)?) {
    if let caller { core.withLock { $0.makeExtras().caller = caller } }
  }
}
