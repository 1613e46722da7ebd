/// A replacement for unbounded recursion, because the stack of a thread can be as small as 512 KiB. Up to
/// ``inlineDepth`` levels run at once, and deeper levels when the stack has unwound, which may be after the call has
/// returned. Use it only for releases, for priorities, and for operations that finish because another one has finished.
enum Trampoline {
  private static let inlineDepth = 16
  private static let current = ThreadLocal<Frame>()

  private final class Frame {
    var depth = 0
    var steps = 0
    var deferredWork = ArrayDeque<() -> Void>()
  }

  /// Makes ``countStep()`` count the steps of the whole call.
  static func asOneCall(_ body: () -> Void) { withFrame { _ in body() } }

  /// Counts a step of the current call. Returns whether its thread may make this step for other operations: at most 16.
  static func countStep() -> Bool {
    guard let frame = current.current else { return true }
    frame.steps += 1
    return frame.steps <= 16
  }

  static func run(_ work: @escaping () -> Void) {
    withFrame { frame in
      if frame.depth < inlineDepth { work() } else { frame.deferredWork.append(work) }
    }
  }

  /// Calls code of the user, which may wait for work that it requests. That work must not be postponed.
  static func callUserCode<Result>(_ body: () throws -> Result) rethrows -> Result {
    current.current == nil ? try body() : try current.withValue(nil, body)
  }

  /// The caller must hold no other references to `objects`.
  static func release(_ objects: consuming [AnyObject]) {
    guard !objects.isEmpty else { return }
    withFrame { frame in
      let released = exchange(&objects, with: [])
      if frame.depth >= inlineDepth { frame.deferredWork.append { withExtendedLifetime(released) {} } }
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
      while let work = frame.deferredWork.popFirst() { withAutoreleasePool(work) }
    }
  }
}
