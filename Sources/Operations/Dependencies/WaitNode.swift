import Foundation

extension WaitSnapshot {
  enum Scope {
    /// A cancelled operation waits for its members, and for the slot in which it finishes.
    case unfinished
    /// The dependencies and members of any operation, even of cancelled ones.
    case everything
    /// As ``everything``, up to dependencies that are in a queue or group or have been started.
    case free
  }

  typealias Wait = (node: Int, kind: WaitKind)

  enum WaitKind: Equatable {
    case dependency
    case member
    /// The end of an operation that has members waits for its own start.
    case ownStart
    case groupStart
    /// A task waits for something in the work of the node.
    case task(TaskWait)
    case slot
    /// A wait for a key that admits `limit` holders.
    case key(limit: Int)
    /// A resource waits for what uses it, or for the claimant that comes first in the wait queue of a key.
    case user

    /// Whether members with such waits only are on a cycle of dependencies.
    var isOfDependencies: Bool { [.dependency, .member, .ownStart, .groupStart].contains(self) }

    /// Whether an operation waits for this before it starts or goes on. A cancelled member still waits for its group.
    var isOfStart: Bool {
      switch self {
      case .dependency, .slot, .key: true
      case .groupStart, .member, .ownStart, .task, .user: false
      }
    }
  }

  enum Subject {
    /// The end of an operation, or the start of one that has members.
    case operation(Operation, isStart: Bool)
    /// A task that waits for keys or holds them, or a claimant that has left its keys to others.
    case task(KeyClaimant)
    case slots(of: WaitPlace)
    case key(KeyTable.Obstacle)
    case room(in: GroupOperation, below: Int)
    /// One of several operations, whose results a task reads as they come.
    case oneOf(@Sendable () -> [AsyncOperation])
  }

  /// While it does not change, the operation waits for the same.
  struct Stamp: Equatable {
    var phase = OperationLifecycle.Phase.pending(.slot)
    var edition: Int32 = 0
    var isCancelled = false
  }

  struct Node {
    let subject: Subject
    var waits: [Wait] = []
    /// The number of waits that must end, or nil if all of them must.
    var needed: Int?
    var place: WaitPlace?
    var stamp = Stamp()

    var operation: Operation? { if case .operation(let operation, _) = subject { operation } else { nil } }

    /// Whether the node is something that operations or tasks use.
    var isResource: Bool {
      switch subject {
      case .operation, .task: false
      case .slots, .key, .room, .oneOf: true
      }
    }
  }
}

extension WaitSnapshot.Stamp {
  init(of operation: Operation) {
    if let own = operation as? AsyncOperation {
      self = own.core.withLock { core in
        Self(phase: core.lifecycle.phase, edition: core.ledger.edition, isCancelled: core.lifecycle.isCancelled)
      }
      if phase.wait == .slot { phase = own.shownPhase }
    } else {
      phase = operation.isFinished ? .finished : operation.isExecuting ? .executing : .pending(.slot)
      isCancelled = operation.isCancelled
    }
  }
}

extension AsyncOperation {
  var groupInside: GroupOperation? { (inside.last ?? self) as? GroupOperation }

  /// The private operations inside each other that work for this one, down to the group that runs the members, if any.
  var inside: [AsyncOperation] {
    Array(sequence(first: self) { $0 is GroupOperation ? nil : $0.members.first }.dropFirst())
  }

  /// Whether this is a group that has not started and is not the private group of another operation.
  var isPendingGroup: Bool { state == .pending && !core.withLock { $0.isInside } }
}
