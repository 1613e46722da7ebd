import Foundation

/// Waits for Foundation operations to finish, on behalf of code that is not an operation, or cannot be an operation
/// there.
///
/// A relay holds no thread and does not poll, because it is itself an operation that depends on the others. Each relay
/// has its own queue, because Foundation walks all waiting operations of a queue at every finish. The relays share
/// their threads.
final class FinishRelay: Operation, @unchecked Sendable {
  private static let threads = DispatchQueue(label: "Operations.relay", attributes: .concurrent)

  private struct State {
    var action: (@Sendable () -> Void)?
    var isWaiting = false
    var isStopped = false
  }

  private let state: Locked<State>

  init(_ action: @escaping @Sendable () -> Void) {
    state = Locked(State(action: action))
    super.init()
  }

  override func main() { takeAction()?() }

  /// Starts to wait. The action is called once, on a thread of the relays, when all of `operations` have finished.
  func wait(for operations: [Operation]) {
    for operation in operations { addDependency(operation) }
    let queue = OperationQueue()
    unsafe queue.underlyingQueue = FinishRelay.threads
    queue.addOperation(self)
    queue.nudge()
    let isStopped = state.withLock { state in
      state.isWaiting = true
      return state.isStopped
    }
    if isStopped { release(operations) }
  }

  /// Stops waiting, and releases the operations.
  ///
  /// - Returns: Whether the action had not been called, and will not be called any more.
  @discardableResult
  func stop(waitingFor operations: [Operation]) -> Bool {
    let (isWaiting, action) = state.withLock { state in
      defer { (state.isStopped, state.action) = (true, nil) }
      return (state.isWaiting, state.action)
    }
    // A relay that has called its action waits for nothing. A relay that is about to start waiting on another thread
    // releases the operations there.
    if isWaiting, action != nil { release(operations) }
    return action != nil
  }

  /// Releases the operations. The dependencies must be removed before the relay is cancelled. Otherwise Foundation
  /// would keep an unretained pointer to an operation that is about to be released.
  private func release(_ operations: [Operation]) {
    for operation in operations { removeDependency(operation) }
    cancel()
  }

  private func takeAction() -> (@Sendable () -> Void)? {
    state.withLock { state in
      defer { state.action = nil }
      return state.action
    }
  }
}

extension OperationQueue {
  /// Makes Foundation check again for operations that can run.
  ///
  /// On Linux, Foundation may permanently overlook an operation that is enqueued while its last dependency finishes on
  /// another thread. Call this only on the package's own queues, which no other code suspends.
  func nudge() { isSuspended = false }
}

/// A dependency with which a group keeps a plain member from starting before it has a slot.
///
/// Meanwhile the member is in a queue of its own, so that Foundation detects when it is cancelled.
final class PlainMemberGate: Operation, @unchecked Sendable {
  override init() {
    super.init()
    name = "slot"
  }

  /// Whether a group has placed the operation in a queue.
  static func holds(_ operation: Operation) -> Bool { operation.dependencies.contains { $0 is PlainMemberGate } }

  /// Whether a group keeps the operation from starting.
  static func isHolding(_ operation: Operation) -> Bool {
    operation.dependencies.contains { $0 is PlainMemberGate && !$0.isFinished }
  }
}

extension Operation {
  /// Whether a plain Foundation operation may still be outside of any queue or group, as far as the toolkit can know.
  var isFreePlainOperation: Bool {
    !isExecuting && !isFinished && !(self is PlainMemberGate) && !PlainMemberGate.holds(self)
  }
}
