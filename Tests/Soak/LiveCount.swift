import Operations

/// Counts how many of the objects that hold one are alive.
package final class LiveCount: @unchecked Sendable {
  package final class Token: Sendable {
    private let count: LiveCount

    package init(_ count: LiveCount) {
      self.count = count
      count.change(by: 1)
    }

    deinit { count.change(by: -1) }
  }

  private let counted = Locked((alive: 0, waiters: [@Sendable () -> Void]()))

  package init() {}

  package var alive: Int { counted.withLock { $0.alive } }

  private func change(by amount: Int) {
    let due = counted.withLock { counted -> [@Sendable () -> Void] in
      counted.alive += amount
      guard counted.alive == 0 else { return [] }
      defer { counted.waiters = [] }
      return counted.waiters
    }
    for waiter in due { waiter() }
  }

  /// Waits until none is alive. A thread of Foundation may release an object a moment after the test.
  package func none() async {
    await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
      let isDone = counted.withLock { counted in
        if counted.alive > 0 { counted.waiters.append { continuation.resume() } }
        return counted.alive == 0
      }
      if isDone { continuation.resume() }
    }
  }
}

/// Sees whether an object has been released, without keeping it.
package final class WeakReference<Object: AnyObject> {
  package weak var object: Object?

  package init(_ object: Object) { self.object = object }
}
