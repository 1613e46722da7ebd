import Foundation

/// Waits for Foundation operations to finish, on behalf of something that is not an operation or must not be one there.
///
/// It holds no thread and polls nothing: it is itself an operation that depends on them. Each relay has a queue of its
/// own, because Foundation walks all the waiting operations of a queue at every finish; the threads are shared.
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

  /// Begins to wait. Calls the action once, on a thread of its own, when all of `operations` have finished.
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
    if isStopped { letGo(of: operations) }
  }

  /// Stops waiting, and lets the operations go.
  ///
  /// - Returns: Whether the action was still to be called, and now is not.
  @discardableResult
  func stop(waitingFor operations: [Operation]) -> Bool {
    let (isWaiting, action) = state.withLock { state in
      defer { (state.isStopped, state.action) = (true, nil) }
      return (state.isWaiting, state.action)
    }
    // One that has fired waits for nothing; one that is about to begin, on another thread, is seen to there.
    if isWaiting, action != nil { letGo(of: operations) }
    return action != nil
  }

  /// In this order, or Foundation would keep an unretained pointer to an operation that is about to go.
  private func letGo(of operations: [Operation]) {
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
  /// Makes Foundation look again for operations that can run.
  ///
  /// On Linux an operation that is enqueued while its last dependency finishes on another thread may be overlooked for
  /// good. Only for our own queues, which nobody else suspends.
  func nudge() { isSuspended = false }
}
