import Foundation

/// Runs a closure when a Foundation operation has finished. It depends on that operation, so it holds no thread. Each relay
/// has its own queue, because Foundation walks all waiting operations of a queue at every finish.
final class FinishRelay: Operation, @unchecked Sendable {
  private static let threads = DispatchQueue(label: "Operations.relay", attributes: .concurrent)

  private enum State {
    /// The relay is being enqueued.
    case new
    case waiting
    case stopped
    case over
  }

  private let action: Waiter
  private let state = Locked(State.new)

  init(_ action: @escaping Waiter) {
    self.action = action
    super.init()
  }

  override func main() { if end(as: .over) != nil { action() } }

  /// Changes the state, and returns the previous one. Nil if the relay has ended before.
  private func end(as new: State) -> State? {
    state.withLock { state in
      switch state {
      case .new, .waiting: exchange(&state, with: new)
      case .stopped, .over: nil
      }
    }
  }

  /// The action is called once, on a thread of the relays, when `operation` has finished.
  func wait(for operation: Operation) {
    addDependency(operation)
    let queue = OperationQueue()
    unsafe queue.underlyingQueue = FinishRelay.threads
    queue.addOperation(self)
    queue.nudge()
    let isStopped = state.withLock { state in
      if state == .new { state = .waiting }
      return state == .stopped
    }
    if isStopped { releaseDependency() }
  }

  /// Releases the operation, and returns whether this call prevented the action.
  @discardableResult
  func stop() -> Bool {
    let previous = end(as: .stopped)
    // If another thread is still inside `wait(for:)`, that thread releases the operation.
    if previous == .waiting { releaseDependency() }
    return previous != nil
  }

  /// The dependency is removed first, because Foundation would keep an unretained pointer to it.
  private func releaseDependency() {
    for operation in dependencies { removeDependency(operation) }
    cancel()
  }
}

extension OperationQueue {
  /// Makes Foundation check again. On Linux, it may permanently overlook an operation that is enqueued while its last
  /// dependency finishes on another thread. Only for the package's own queues, which no other code suspends.
  func nudge() { isSuspended = false }
}
