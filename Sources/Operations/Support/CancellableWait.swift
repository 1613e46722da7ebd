/// Suspends the current task until a closure is called or the task is cancelled, without holding a thread.
///
/// - Parameter register: Stores the closure that ends the wait, which any thread may call at any time, even after the
///   end. Returns a closure that removes it, which is called if the task is cancelled.
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
