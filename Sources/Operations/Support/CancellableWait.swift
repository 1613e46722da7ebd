/// Suspends the current task until a closure is called or the task is cancelled, without holding a thread.
///
/// - Parameter register: Stores the closure that ends the wait. The closure can be called at any time, on any thread.
///   Calls after the end of the wait have no effect.
package func waitUnlessCancelled(_ register: (_ resume: @escaping @Sendable () -> Void) -> Void) async {
  let waiter = Locked<CheckedContinuation<Void, Never>?>(nil)
  let resume = { @Sendable () -> Void in waiter.withLock { $0.take() }?.resume() }
  await withTaskCancellationHandler {
    await withCheckedContinuation { continuation in
      waiter.withLock { $0 = continuation }
      register(resume)
      // The handler may have run before the continuation was stored.
      if Task.isCancelled { resume() }
    }
  } onCancel: {
    resume()
  }
}
