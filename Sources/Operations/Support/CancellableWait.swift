/// Suspends the current task until a closure is called or the task is cancelled, without holding a thread.
///
/// - Parameter register: Stores the closure that ends the wait. The closure can be called at any time, on any thread.
///   Calls after the end of the wait have no effect.
package func waitUnlessCancelled(_ register: (_ resume: @escaping @Sendable () -> Void) -> Void) async {
  await waitOrUnregister { resume in
    register(resume)
    return nil
  }
}

/// Suspends the current task as ``waitUnlessCancelled(_:)`` does, and removes what was stored if the task is cancelled.
///
/// - Parameter register: Stores the closure that ends the wait, and returns a closure that removes it.
package func waitOrUnregister(_ register: (_ resume: @escaping @Sendable () -> Void) -> (() -> Void)?) async {
  let waiter = Locked<CheckedContinuation<Void, Never>?>(nil)
  var unregister: (() -> Void)?
  let resume = { @Sendable () -> Void in waiter.withLock { $0.take() }?.resume() }
  await withTaskCancellationHandler {
    await withCheckedContinuation { continuation in
      waiter.withLock { $0 = continuation }
      unregister = register(resume)
      // The handler may have run before the continuation was stored.
      if Task.isCancelled { resume() }
    }
  } onCancel: {
    resume()
  }
  if Task.isCancelled { unregister?() }
}
