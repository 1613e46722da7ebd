/// Runs work that would otherwise nest without bound, one piece after another.
///
/// The end of a group can end its enclosing group, and so on outward. The release of an operation can release the
/// operation that it waited for, and so on backward. Both recurse once per level, and a thread's stack can be as
/// small as 512 KiB. Up to ``inlineDepth`` levels run at once, and deeper ones run when the stack has unwound.
///
/// Only work that no caller relies on when a call returns may run here: ends that follow from other ends, and
/// releases. A request from a caller, such as `cancel()`, uses a separate list instead.
enum Trampoline {
  private static let inlineDepth = 16
  private static let current = ThreadLocal<Frame>()

  private final class Frame {
    var depth = 0
    var deferredWork: [() -> Void] = []
    var deferredReleases: [AnyObject] = []
  }

  static func run(_ work: @escaping () -> Void) {
    withFrame { frame in
      if frame.depth < inlineDepth { work() } else { frame.deferredWork.append(work) }
    }
  }

  /// Releases `objects`, which must be the last references to them that the caller holds.
  static func release(_ objects: consuming [AnyObject]) {
    guard !objects.isEmpty else { return }
    withFrame { frame in
      if frame.depth < inlineDepth { objects.removeAll() } else { frame.deferredReleases.append(contentsOf: objects) }
      objects = []
    }
  }

  private static func withFrame(_ body: (Frame) -> Void) {
    if let frame = current.current {
      frame.depth += 1
      body(frame)
      frame.depth -= 1
      return
    }
    let frame = Frame()
    current.withValue(frame) {
      body(frame)
      while true {
        if !frame.deferredWork.isEmpty {
          let work = frame.deferredWork
          frame.deferredWork = []
          for item in work { item() }
        } else if frame.deferredReleases.popLast() == nil {
          break
        }
      }
    }
  }
}
