/// Suspends the current task until a closure is called or the task is cancelled, without holding a thread.
///
/// - Parameter register: Stores the closure that ends the wait. The closure can be called at any time, on any thread.
///   Calls after the end of the wait have no effect.
package func waitUnlessCancelled(_ register: (_ resume: @escaping @Sendable () -> Void) -> Void) async {
  let wait = CancellableWait()
  await withTaskCancellationHandler {
    await withCheckedContinuation { continuation in
      wait.begin(continuation)
      register { wait.end() }
    }
  } onCancel: {
    wait.end()
  }
}

/// One suspension of a task.
private final class CancellableWait: Sendable {
  private enum State {
    case registering
    case suspended(CheckedContinuation<Void, Never>)
    case over
  }

  private let state = Locked(State.registering)

  func begin(_ continuation: CheckedContinuation<Void, Never>) {
    let isOver = state.withLock { state in
      if case .over = state { return true }
      state = .suspended(continuation)
      return false
    }
    if isOver { continuation.resume() }
  }

  func end() {
    let state = state.withLock { state in
      defer { state = .over }
      return state
    }
    if case .suspended(let continuation) = state { continuation.resume() }
  }
}
