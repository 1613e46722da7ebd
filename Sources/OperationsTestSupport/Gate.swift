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
  /// The closures to call when the gate is opened, or nil if it is open.
  private let waiters = Locked<[@Sendable () -> Void]?>([])

  /// Creates a closed gate.
  public init() {}

  /// Whether the gate has been opened.
  public var isOpen: Bool { waiters.withLock { $0 == nil } }

  /// Opens the gate for all current and future waiters. Opening it again has no effect.
  public func open() { for waiter in waiters.withLock({ $0.take() }) ?? [] { waiter() } }

  /// Calls `body` when the gate is open: at once, or on the thread that opens it.
  public func whenOpen(_ body: @escaping @Sendable () -> Void) {
    let isOpen = waiters.withLock { waiters in
      waiters?.append(body)
      return waiters == nil
    }
    if isOpen { body() }
  }

  /// Waits until the gate is open or the waiting task is cancelled, without holding a thread.
  public func opened() async {
    await waitOrUnregister { resume in
      whenOpen(resume)
      return nil
    }
  }
}

extension [Int: Gate] {
  mutating func gate(at number: Int) -> Gate {
    let gate = self[number] ?? Gate()
    self[number] = gate
    return gate
  }
}
