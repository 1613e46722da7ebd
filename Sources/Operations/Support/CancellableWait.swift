/// A closure to call at the end of something. Lists of waiters are guarded by the locks of their owners.
typealias Waiter = @Sendable () -> Void

/// Suspends the current task until a closure is called or the task is cancelled. `register` stores the closure, which
/// any thread may call even after the end. It returns a closure that removes it after a cancellation.
package func waitOrUnregister(_ register: (_ resume: @escaping @Sendable () -> Void) -> (() -> Void)?) async {
  // It is taken, and so resumed once. It needs no check, for which a checked continuation allocates an object.
  let waiter = unsafe Locked<UnsafeContinuation<Void, Never>?>(nil)
  var unregister: (() -> Void)?
  let resume = { @Sendable () -> Void in unsafe waiter.withLock { unsafe $0.take() }?.resume() }
  await withTaskCancellationHandler {
    await unsafe withUnsafeContinuation { continuation in
      unsafe waiter.withLock { unsafe $0 = continuation }
      unregister = register(resume)
      // The handler may have run before the continuation was stored.
      if Task.isCancelled { resume() }
    }
  } onCancel: {
    resume()
  }
  if Task.isCancelled { unregister?() }
}
