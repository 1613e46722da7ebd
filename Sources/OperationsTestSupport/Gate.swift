import Operations

/// A gate that is closed until a test opens it. Use gates to control the order of events in a test.
///
/// ```swift
/// let (begun, gate) = (Gate(), Gate())
/// let operation = AsyncBlockOperation { operation in
///   begun.open()
///   gate.whenOpen { operation.finish() }
/// }
/// queue.addOperation(operation)
/// await begun.opened()
/// #expect(operation.isExecuting)   // for as long as the test wants
/// gate.open()
/// await operation.finished()
/// ```
public final class Gate: Sendable {
  private struct State {
    var isOpen = false
    var waiters: [@Sendable () -> Void] = []
  }

  private let state = Locked(State())

  /// Creates a closed gate.
  public init() {}

  /// Whether the gate has been opened.
  public var isOpen: Bool { state.withLock { $0.isOpen } }

  /// Opens the gate for all current and future waiters. Opening it again has no effect.
  public func open() {
    let waiters = state.withLock { state in
      state.isOpen = true
      defer { state.waiters = [] }
      return state.waiters
    }
    for waiter in waiters { waiter() }
  }

  /// Calls `body` when the gate is open: at once, or on the thread that opens it.
  public func whenOpen(_ body: @escaping @Sendable () -> Void) {
    let isOpen = state.withLock { state in
      if !state.isOpen { state.waiters.append(body) }
      return state.isOpen
    }
    if isOpen { body() }
  }

  /// Waits until the gate is open or the waiting task is cancelled, without holding a thread.
  public func opened() async { await waitUnlessCancelled { whenOpen($0) } }
}
