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

  /// What has to happen before: the ends of its dependencies; if it is a group's end, those of its members; and the start
  /// of the group around it. A dependency that was named repeatedly is repeated.
  ///
  /// An operation that has been cancelled waits for its members at most.
  var next: [WaitNode] {
    guard let own = operation as? AsyncOperation else {
      return operation.isCancelled ? [] : operation.dependencies.map { WaitNode($0) }
    }
    let (dependencies, supervisor) = own.core.withLock { core in
      core.lifecycle.isCancelled ? ([], nil) : (core.ledger.dependencies, core.supervisor)
    }
    var result = dependencies.map { WaitNode($0.operation) }
    if !isStart { result += own.members.map { WaitNode($0) } }
    if let group = supervisor?.supervisedGroup, group.state == .pending {
      result.append(WaitNode(group, isStart: true))
    }
    return result
  }
}
