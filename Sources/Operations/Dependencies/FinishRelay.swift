import Foundation

/// An operation that runs a closure when Foundation operations have finished.
///
/// A relay depends on the operations, so it holds no thread and does not poll. Each relay has its own queue, because
/// Foundation walks all waiting operations of a queue at every finish. All relays share the threads of one dispatch
/// queue.
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

  override func main() { state.withLock { $0.action.take() }?() }

  /// Starts waiting. The relay calls its action once, on a thread of the relays, when all of `operations` have
  /// finished.
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
  /// - Returns: Whether this call prevented the action.
  @discardableResult
  func stop(waitingFor operations: [Operation]) -> Bool {
    let (isWaiting, action) = state.withLock { state in
      defer { (state.isStopped, state.action) = (true, nil) }
      return (state.isWaiting, state.action)
    }
    // A relay that has called its action waits for nothing. If another thread is still inside `wait(for:)`, that thread
    // releases the operations.
    if isWaiting, action != nil { release(operations) }
    return action != nil
  }

  /// Releases the operations, and cancels the relay. The dependencies must be removed first. Otherwise Foundation would
  /// keep an unretained pointer to an operation that is about to be released.
  private func release(_ operations: [Operation]) {
    for operation in operations { removeDependency(operation) }
    cancel()
  }
}

extension OperationQueue {
  /// Makes Foundation check again for operations that can run.
  ///
  /// On Linux, Foundation may permanently overlook an operation that is enqueued while its last dependency finishes on
  /// another thread. Call this only on the package's own queues, which no other code suspends.
  func nudge() { isSuspended = false }
}

/// A dependency that keeps a plain member of a group from starting before the member has a slot.
///
/// Meanwhile the member waits in its own queue, so that Foundation detects a cancellation.
final class PlainMemberGate: Operation, @unchecked Sendable {
  private weak var queue: OperationQueue?

  init(in queue: OperationQueue) {
    self.queue = queue
    super.init()
    name = "slot"
  }

  /// Makes Foundation start a member that another thread has cancelled while this thread added a dependency to it.
  ///
  /// On Linux, Foundation may record last that such a member is not ready. It corrects the record at the next event in
  /// the queue and starts the member at the event after that, but the queue has no event except the cancellation.
  static func recheckCancelled(_ member: Operation) {
    guard member.isCancelled, !member.isFinished else { return }
    for case let gate as PlainMemberGate in member.dependencies {
      gate.queue?.nudge()
      gate.queue?.nudge()
    }
  }

  /// Whether a group has placed the operation in a queue.
  static func holds(_ operation: Operation) -> Bool { operation.dependencies.contains { $0 is PlainMemberGate } }

  /// Whether a group keeps the operation from starting.
  static func isHolding(_ operation: Operation) -> Bool {
    operation.dependencies.contains { $0 is PlainMemberGate && !$0.isFinished }
  }
}

extension Operation {
  /// Whether a plain Foundation operation is neither executing nor finished, and is in no queue or group that the
  /// package can detect.
  var isFreePlainOperation: Bool {
    !isExecuting && !isFinished && !(self is PlainMemberGate) && !PlainMemberGate.holds(self)
  }
}
