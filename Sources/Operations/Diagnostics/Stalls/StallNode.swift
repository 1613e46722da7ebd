import Foundation

/// A point of the graph of what is waited for, whatever it is waited for by.
struct StallNode {
  enum Subject {
    /// The end of an operation.
    case operation(Operation)
    /// The beginning of a group that has members.
    case beginning(of: AsyncOperation)
    case slots(of: StallPlace)
  }

  struct Wait {
    enum Kind {
      case dependency
      case member
      case beginning
      /// One of the slots of a place.
      case slot
      /// The end of one who has such a slot.
      case slotHolder
      /// - Parameters:
      ///   - limit: How many may hold it.
      ///   - isHeld: By the one that is waited for. Otherwise that one is before this in the line.
      case key(ExclusivityKey, limit: Int, isHeld: Bool)
    }

    let node: Int
    let kind: Kind
  }

  /// Why something does not get on that waits for no other operation.
  enum Obstacle {
    /// - Parameter isCertain: Foundation has never asked whether it was ready.
    case notEnqueued(isCertain: Bool)
    case suspended(StallPlace)
    /// The place is set to execute nothing.
    case hasNoSlots(StallPlace)
    /// A group without members that waits for some.
    case waitsForMembers(isSuspended: Bool)
    case notReady
    case condition(String)
    case executing
    case backingOff(before: String, remaining: Duration)
    /// Too many have begun under the key.
    case throttled(ExclusivityKey)
    /// It is about to be started.
    case starting(StallPlace?)
    case ending
  }

  /// What must not have changed if it is to be believed that several operations waited at the same time.
  struct Stamp: Equatable {
    var phase = OperationLifecycle.Phase.pending
    var edition: Int32 = 0
    var isCancelled = false
  }

  let subject: Subject
  var waits: [Wait] = []
  /// How many of them have to be over. Nil is all of them.
  var needed: Int?
  var obstacle: Obstacle?
  var place: StallPlace?
  /// How long it has been in the phase it is in, if it has been started.
  var elapsed: Duration?
  var stamp = Stamp()

  /// The operation; of slots there is none.
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
