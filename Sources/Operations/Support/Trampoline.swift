/// A replacement for unbounded recursion.
///
/// When a group finishes, its enclosing group may finish, and so on. When an operation is released, the operation that
/// it waited for may be released, and so on. Both recurse once per level, and the stack of a thread can be as small as
/// 512 KiB. Up to ``inlineDepth`` levels run at once. Deeper levels run when the stack has unwound.
///
/// Work may run after the call that requests it has returned. Use the trampoline only for releases, and for operations
/// that finish because another operation has finished. A request from a caller, such as `cancel()`, uses a separate
/// list instead.
enum Trampoline {
  private static let inlineDepth = 16
  private static let current = ThreadLocal<Frame>()

  private final class Frame {
    var depth = 0
    var deferredWork = ArrayDeque<() -> Void>()
    var deferredReleases: [AnyObject] = []
  }

  /// Runs `work`, now or when the stack has unwound.
  static func run(_ work: @escaping () -> Void) {
    withFrame { frame in
      if frame.depth < inlineDepth { work() } else { frame.deferredWork.append(work) }
    }
  }

  /// Calls code of the user, which may wait for the result of work that it requests. That work is not postponed until
  /// the stack below has unwound.
  static func isolate<Result>(_ body: () throws -> Result) rethrows -> Result { try current.withoutValue(body) }

  /// Releases `objects`. The caller must hold no other references to them.
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
      repeat {
        while let work = frame.deferredWork.popFirst() { work() }
      } while frame.deferredReleases.popLast() != nil
    }
  }
}
