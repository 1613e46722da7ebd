extension SerialScheduler {
  /// What happens to accepted events when a scheduler is shut down.
  public enum ShutdownMode: Sendable {
    /// The events run.
    case drain
    /// The events are dropped. Callers that wait for one of them receive ``OperationError/Code/shutDown``.
    case discard
  }

  /// Whether the scheduler has been shut down and refuses events.
  public var isShutDown: Bool { core.mailbox.withLock { $0.phase != .open } }

  /// Shuts the scheduler down, so that it refuses all further events.
  ///
  /// After a shutdown `schedule` returns false, and `run`, `send` and `wait` throw ``OperationError/Code/shutDown``.
  /// Delayed events that are not due are dropped. The mode decides whether accepted events still run. The running event
  /// continues to its end.
  ///
  /// Jobs of actors and tasks run even after a shutdown, because their callers would otherwise never resume.
  ///
  /// The method does not wait for the scheduler. Await ``drained()`` for that. Read what you still need from the
  /// scheduler's objects before you shut it down.
  ///
  /// - Precondition: This is not the main scheduler, which belongs to the whole program.
  public func shutDown(_ mode: ShutdownMode = .drain) {
    if isMain {
      misuse(
        "The main scheduler cannot be shut down, because the whole program depends on it. Shut down a scheduler of "
          + "your own."
      )
    }
    if mode == .discard { core.mode.insert(.discarding) }
    let (refused, released) = core.mailbox.withLock { $0.shutDown(discarding: mode == .discard) }
    for body in refused { body(OperationError.shutDown(name)) }
    withExtendedLifetime(released) {}
    updateTimer()
  }

  /// Suspends until all events and jobs accepted so far have run.
  ///
  /// The method does not wait for delayed events that are not due. It works after a shutdown, too, and holds no
  /// thread.
  public func drained() async {
    await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
      core.post(always: true, enqueue: enqueue) { $0.mark { continuation.resume() } }
    }
  }
}
