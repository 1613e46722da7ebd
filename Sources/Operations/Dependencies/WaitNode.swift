import Foundation

/// A point of the graph of what operations wait for: the end of an operation, or the start of a group, for which its
/// members wait.
struct WaitNode: Hashable {
  let operation: Operation
  let isStart: Bool

  init(_ operation: Operation) { self.init(operation, isStart: false) }

  private init(_ operation: Operation, isStart: Bool) {
    self.operation = operation
    self.isStart = isStart
  }

  static func == (left: Self, right: Self) -> Bool {
    left.operation === right.operation && left.isStart == right.isStart
  }

  func hash(into hasher: inout Hasher) {
    hasher.combine(ObjectIdentifier(operation))
    hasher.combine(isStart)
  }

  /// What has to happen before, and the edition of the ledger that says so.
  struct Wait {
    var next: [WaitNode]
    var edition: Int32 = 0
  }

  /// What has to happen before: the ends of its dependencies; if it is a group's end, those of its members; and the
  /// start of the group around it. A dependency that was named repeatedly is repeated.
  ///
  /// An operation that has been cancelled waits for its members at most.
  var wait: Wait { wait(evenIfCancelled: false) }

  func wait(evenIfCancelled: Bool) -> Wait {
    guard let own = operation as? AsyncOperation else {
      return Wait(next: operation.isCancelled && !evenIfCancelled ? [] : operation.dependencies.map { WaitNode($0) })
    }
    let (dependencies, edition, supervisor, isCancelled) = own.core.withLock { core in
      (core.ledger.dependencies.entries, core.ledger.edition, core.supervisor, core.lifecycle.isCancelled)
    }
    var wait = Wait(next: [], edition: edition)
    if !isCancelled || evenIfCancelled { wait.next += dependencies.map { WaitNode($0.operation) } }
    if !isStart { wait.next += own.members.map { WaitNode($0) } }
    if !isCancelled, let group = supervisor?.supervisedGroup, group.state == .pending {
      wait.next.append(WaitNode(group, isStart: true))
    }
    return wait
  }
}
