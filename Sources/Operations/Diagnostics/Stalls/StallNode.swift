import Foundation

/// A node in the graph of waits.
struct StallNode {
  enum Subject {
    /// The finish of an operation.
    case operation(Operation)
    /// The start of an operation that has members.
    case beginning(of: AsyncOperation)
    case slots(of: StallPlace)
  }

  struct Wait {
    enum Kind {
      case dependency
      case member
      case beginning
      /// A wait for one of the slots of a place.
      case slot
      /// A wait for the finish of an operation that uses such a slot.
      case slotHolder
      /// A wait for a key.
      ///
      /// - Parameters:
      ///   - limit: The number of operations that can hold the key.
      ///   - isHeld: Whether the awaited operation holds the key. If not, it precedes this operation in the wait
      ///     queue.
      case key(ExclusivityKey, limit: Int, isHeld: Bool)
    }

    let node: Int
    let kind: Kind
  }

  /// The reason why a node that waits for no other node has not finished.
  enum Obstacle {
    /// The operation is in no known queue or group.
    ///
    /// - Parameter isCertain: Whether Foundation has never checked the readiness of the operation.
    case notEnqueued(isCertain: Bool)
    case suspended(StallPlace)
    /// The limit of the place is 0.
    case hasNoSlots(StallPlace)
    /// The operation is a group that stays open for further members.
    case waitsForMembers(isSuspended: Bool)
    case notReady
    case condition(String)
    case executing
    case backingOff(before: String, remaining: Duration)
    /// The throttled key has reached its limit of starts.
    case throttled(ExclusivityKey)
    /// The operation is about to start.
    case starting(StallPlace?)
    case ending
  }

  /// The state of an operation at the moment it was read.
  ///
  /// Several operations waited at the same time only if none of their stamps has changed.
  struct Stamp: Equatable {
    var phase = OperationLifecycle.Phase.pending
    var edition: Int32 = 0
    var isCancelled = false
  }

  let subject: Subject
  var waits: [Wait] = []
  /// The number of waits that must end, or nil if all of them must.
  var needed: Int?
  var obstacle: Obstacle?
  var place: StallPlace?
  /// The time that the operation has spent in its current phase, or nil if it has not started.
  var elapsed: Duration?
  var stamp = Stamp()

  /// The operation, or nil for slots.
  var operation: Operation? {
    switch subject {
    case .operation(let operation): operation
    case .beginning(let group): group
    case .slots: nil
    }
  }
}

extension StallNode.Stamp {
  init(of operation: Operation) {
    if let own = operation as? AsyncOperation {
      self = own.core.withLock { Self($0) }
    } else {
      phase = operation.isFinished ? .finished : operation.isExecuting ? .executing : .pending
      isCancelled = operation.isCancelled
    }
  }

  init(_ core: OperationCore) {
    self.init(phase: core.lifecycle.phase, edition: core.ledger.edition, isCancelled: core.lifecycle.isCancelled)
  }
}
