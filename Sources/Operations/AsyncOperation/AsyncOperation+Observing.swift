import Foundation

extension AsyncOperation {
  /// Lets closures hear of the stations of the operation's life, in the order they were added.
  ///
  /// Added late, an observer hears what is still to come; one that is added after the end hears `didFinish` at once.
  public final func addObserver(_ observer: OperationObserver) {
    let isLate = core.withLock { core in
      if core.lifecycle.phase == .finished { return true }
      core.observers.append(observer)
      return false
    }
    if isLate { observer.didFinish?(self) }
  }

  /// Calls `waiter` when the operation has finished and its observers have heard of it; at once if that is so already.
  final func whenSettled(_ waiter: @escaping @Sendable () -> Void) {
    let isSettled = core.withLock { core in
      if !core.isSettled { core.waiters.append(waiter) }
      return core.isSettled
    }
    if isSettled { waiter() }
  }

  /// The same, for a follower that may stop following, and the last of them to be called.
  final func whenSettled(for follower: AnyObject, _ waiter: @escaping @Sendable () -> Void) {
    let isSettled = core.withLock { core in
      if !core.isSettled { core.makeExtras().followers[ObjectIdentifier(follower)] = waiter }
      return core.isSettled
    }
    if isSettled { waiter() }
  }

  final func forget(follower: AnyObject) {
    let waiter = core.withLock { $0.extras?.followers.removeValue(forKey: ObjectIdentifier(follower)) }
    withExtendedLifetime(waiter) {}
  }

  /// Who follows the operation from close by: mostly nobody.
  var trace: OperationTrace? { core.withLock { $0.trace } }
}
