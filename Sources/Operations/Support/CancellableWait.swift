/// A closure to call at the end of something. Lists of waiters are guarded by the locks of their owners.
package typealias Waiter = @Sendable () -> Void

/// Suspends the current task until a closure is called or the task is cancelled. `register` stores the closure, which
/// any thread may call even after the end. It returns a closure that removes it after a cancellation. The thread that
/// cancels the task calls `onCancel`.
package func waitOrUnregister(onCancel: Waiter? = nil, _ register: (@escaping Waiter) -> (() -> Void)?) async {
  // Not the continuation, whose layout the program looks up when it runs, and not an `UnsafeContinuation`, whose inlined
  // parts the thread sanitizer takes for races.
  let waiter = Locked<Resumption?>(nil)
  var unregister: (() -> Void)?
  let resume = { @Sendable () -> Void in waiter.withLock { $0.take() }?.resume() }
  await withTaskCancellationHandler {
    await withCheckedContinuation { continuation in
      waiter.withLock { $0 = Resumption { continuation.resume() } }
      unregister = register(resume)
      // The handler may have run before the continuation was stored.
      if Task.isCancelled { resume() }
    }
  } onCancel: {
    resume()
    onCancel?()
  }
  if Task.isCancelled { unregister?() }
}

private struct Resumption: Sendable {
  let resume: Waiter
}
