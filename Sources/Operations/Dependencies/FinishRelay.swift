import Foundation

/// Runs a closure when Foundation operations have finished. It depends on them, so it holds no thread. Each relay has
/// its own queue, because Foundation walks all waiting operations of a queue at every finish.
final class FinishRelay: Operation, @unchecked Sendable {
  private static let threads = DispatchQueue(label: "Operations.relay", attributes: .concurrent)

  private enum State {
    /// The relay is being enqueued.
    case new(action: @Sendable () -> Void)
    case waiting(action: @Sendable () -> Void)
    case stopped
    case over

    var action: (@Sendable () -> Void)? {
      switch self {
      case .new(let action), .waiting(let action): action
      case .stopped, .over: nil
      }
    }
  }

  private let state: Locked<State>

  init(_ action: @escaping @Sendable () -> Void) {
    state = Locked(.new(action: action))
    super.init()
  }

  override func main() { end(as: .over).action?() }

  /// Changes the state, unless the action has been taken before, and returns the previous state.
  private func end(as new: State) -> State {
    state.withLock { state in
      defer { if state.action != nil { state = new } }
      return state
    }
  }

  /// The action is called once, on a thread of the relays, when all of `operations` have finished.
  func wait(for operations: [Operation]) {
    for operation in operations { addDependency(operation) }
    let queue = OperationQueue()
    unsafe queue.underlyingQueue = FinishRelay.threads
    queue.addOperation(self)
    queue.nudge()
    let isStopped = state.withLock { state in
      if case .new(let action) = state { state = .waiting(action: action) }
      return if case .stopped = state { true } else { false }
    }
    if isStopped { release(operations) }
  }

  /// Releases the operations, and returns whether this call prevented the action.
  @discardableResult
  func stop(waitingFor operations: [Operation]) -> Bool {
    let previous = end(as: .stopped)
    // If another thread is still inside `wait(for:)`, that thread releases the operations.
    if case .waiting = previous { release(operations) }
    return previous.action != nil
  }

  /// The dependencies are removed first, because Foundation would keep unretained pointers to them.
  private func release(_ operations: [Operation]) {
    for operation in operations { removeDependency(operation) }
    cancel()
  }
}

extension OperationQueue {
  /// Makes Foundation check again. On Linux, it may permanently overlook an operation that is enqueued while its last
  /// dependency finishes on another thread. Only for the package's own queues, which no other code suspends.
  func nudge() { isSuspended = false }
}
