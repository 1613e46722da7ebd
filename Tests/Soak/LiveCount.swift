import Operations
import OperationsTestSupport

/// Counts how many of the objects that hold one are alive.
package final class LiveCount: Sendable {
  package final class Token: Sendable {
    private let count: LiveCount

    package init(_ count: LiveCount) {
      self.count = count
      count.change(by: 1)
    }

    deinit { count.change(by: -1) }
  }

  /// The gate opens when none is alive any more.
  private let counted = Locked((alive: 0, end: Gate()))

  package init() {}

  package var alive: Int { counted.withLock { $0.alive } }

  private func change(by amount: Int) {
    let end = counted.withLock { counted -> Gate? in
      counted.alive += amount
      return counted.alive == 0 ? exchange(&counted.end, with: Gate()) : nil
    }
    end?.open()
  }

  /// Waits until none is alive. A thread of Foundation may release an object a moment after the test.
  package func none() async {
    let end = counted.withLock { $0.alive > 0 ? $0.end : nil }
    await end?.opened()
  }
}

/// Sees whether an object has been released, without keeping it.
package final class WeakReference<Object: AnyObject> {
  package weak var object: Object?

  package init(_ object: Object) { self.object = object }
}
