/// Runs work that would otherwise nest without bound one piece after another.
///
/// The end of a group can be the end of the group around it, and so on outwards; the release of an operation can be the
/// release of the one it waited for, and so on backwards. Both recurse once a level, and a thread's stack is as small
/// as 512 KiB. Up to ``inlineDepth`` levels run where they are asked for, deeper ones when the stack has unwound.
///
/// So only what no caller counts on when a call returns may run here: ends that follow from others, and releases. A
/// request of a caller's, as `cancel()` is, goes through a list of its own instead.
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

  /// Lets go of `objects`, which must be the last reference to them that the caller holds.
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
