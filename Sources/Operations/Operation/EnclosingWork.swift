/// Work that other operations run inside, which may use its keys.
protocol EnclosingWork: AnyObject, Sendable {
  /// The work of the task that runs this work.
  var caller: (any EnclosingWork)? { get }
  /// The group or the operation that this work is inside.
  var outer: AsyncOperation? { get }
}

extension EnclosingWork {
  /// The work around this work, innermost first. Contains a group twice if a task waits for a slot of its own group.
  var enclosing: [any EnclosingWork] {
    var found: [any EnclosingWork] = []
    var rest: [any EnclosingWork] = []
    var next: (any EnclosingWork)? = self
    while let work = next {
      let (outer, caller) = (work.outer, work.caller)
      if let outer, caller != nil { rest.append(outer) }
      next = caller ?? outer ?? rest.popLast()
      if let next { found.append(next) }
    }
    return found
  }
}

enum CurrentWork {
  /// The work that the current task does. Inherited by child tasks.
  @TaskLocal static var innermost: (any EnclosingWork)?
}

extension AsyncOperation: EnclosingWork {
  final var caller: (any EnclosingWork)? { core.withLock { $0.extras?.caller } }

  final var outer: AsyncOperation? { core.withLock { $0.supervisor }?.supervisedGroup }

  /// Makes the operation a part of the work that waits for it.
  final func belong(to caller: (any EnclosingWork)?) {
    if let caller { core.withLock { $0.makeExtras().caller = caller } }
  }
}
