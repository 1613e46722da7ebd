extension SerialScheduler {
  /// What becomes of the events that have been accepted.
  public enum ShutdownMode: Sendable {
    /// They are run.
    case drain
    /// They are dropped, and who waits for one gets ``OperationError/Code/shutDown``.
    case discard
  }

  /// Whether events are refused.
  public var isShutDown: Bool { core.mailbox.withLock { $0.phase != .open } }

  /// Ends the scheduler's service: from now on `schedule` returns false, `run`, `send` and `wait` throw
  /// ``OperationError/Code/shutDown``, and events for a time to come are dropped.
  ///
  /// It does not wait; ``drained()`` does. The event that is being run goes on to its end, and jobs of actors and tasks
  /// are run also after this, for who awaits them would wait for ever. What was accepted is run
  /// (``ShutdownMode/drain``) or not (``ShutdownMode/discard``), when those who wait for it hear of that at once. What
  /// somebody wants to read of the scheduler's objects in the end has to be read before.
  ///
  /// - Precondition: It is not the main scheduler, which belongs to the whole program.
  public func shutDown(_ mode: ShutdownMode = .drain) {
    if isMain {
      misuse("The main scheduler cannot be shut down: it belongs to the whole program. Use one of your own.")
    }
    if mode == .discard { core.mode.insert(.discarding) }
    let (refused, released) = core.mailbox.withLock { $0.shutDown(discarding: mode == .discard) }
    for body in refused { body(OperationError.shutDown(name)) }
    withExtendedLifetime(released) {}
    updateTimer()
  }

  /// Waits until everything has been run that was accepted before, without holding a thread.
  ///
  /// It works after a shutdown, too. Events for a time to come are not waited for.
  public func drained() async {
    await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
      core.post(always: true, enqueue: enqueue) { $0.mark { continuation.resume() } }
    }
  }
}
