extension SerialScheduler {
  /// What happens to accepted events when a scheduler is shut down.
  public enum ShutdownMode: Sendable {
    /// The events run.
    case drain
    /// The events are dropped. Callers that wait for a dropped event receive ``OperationError/Code/shutDown``.
    case discard
  }

  /// Whether the scheduler has been shut down and refuses events.
  public var isShutDown: Bool { core.mailbox.withLock { $0.phase != .open } }

  /// Shuts the scheduler down, so that it refuses all further events.
  ///
  /// After a shutdown `schedule` returns false, and `run`, `send` and `wait` throw ``OperationError/Code/shutDown``.
  /// Delayed events that are not due are dropped. The mode decides whether accepted events still run. An event that is
  /// running finishes.
  ///
  /// Jobs of actors and tasks run even after a shutdown, because their callers would otherwise never resume.
  ///
  /// The method returns immediately. Await ``drained()`` to wait for the accepted events. Before a shutdown, read all
  /// values that you need from the scheduler's objects.
  ///
  /// - Precondition: The scheduler is not ``main``, which belongs to the whole program.
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
  /// The method does not wait for delayed events that are not due. It works even after a shutdown, and blocks no
  /// thread.
  public func drained() async {
    await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
      core.post(always: true, enqueue: enqueue) { $0.mark { continuation.resume() } }
    }
  }
}

extension SerialScheduler {
  /// Adds an event that cannot be withdrawn and does not count toward the capacity.
  func post(_ event: @escaping @Sendable () -> Void, _ origin: EventOrigin) -> Bool {
    if !core.mode.isPlain { return postSlowly(recordingWait(of: event), origin) }
    return core.mailbox.withLock { $0.post(event, origin) } ?? postSlowly(event, origin)
  }

  /// Not inlined, because inlining would cost the fast path registers.
  @inline(never)
  private func postSlowly(_ event: @escaping @Sendable () -> Void, _ origin: EventOrigin) -> Bool {
    core.post(enqueue: enqueue) { $0.post(event, origin) == true }
  }

  func accept(_ ticket: EventTicket, _ event: @escaping @Sendable () -> Void) -> Bool {
    accept(ticket, EventTicket.body(of: event)) == .accepted
  }

  /// Adds an event, and passes a refusal to the body of the event that it replaces, if any.
  ///
  /// - Parameter handedOver: Whether a blocked thread runs the event, so that the mailbox needs no entry.
  func accept(
    _ ticket: EventTicket,
    handedOver: Bool = false,
    _ body: @escaping EventTicket.Body
  ) -> Mailbox.Acceptance {
    let body = core.mode.isPlain ? body : recordingWait(of: body)
    let (acceptance, dropped) =
      handedOver
      ? core.mailbox.withLock { $0.accept(ticket, body, handedOver: true) }
      : core.post(enqueue: enqueue) { $0.accept(ticket, body) }
    dropped?(OperationError.overflow(name, core.capacity))
    return acceptance
  }

  /// Adds an event, and calls its body if the event is refused.
  ///
  /// - Returns: Whether the event was accepted immediately.
  @discardableResult
  func submit(_ ticket: EventTicket, _ body: @escaping EventTicket.Body) -> Bool {
    let acceptance = accept(ticket, body)
    switch acceptance {
    case .accepted: return true
    case .suspended: break
    case .shutDown: body(OperationError.shutDown(name))
    case .full: body(OperationError.overflow(name, core.capacity))
    case .withdrawn: body(CancellationError())
    }
    return false
  }

  /// Withdraws an event that has not begun.
  ///
  /// - Parameter onlyIfSuspended: Whether to keep the event if it has been accepted.
  func withdraw(_ ticket: EventTicket, onlyIfSuspended: Bool = false) {
    let (body, hasRoom) = core.mailbox.withLock { mailbox -> (EventTicket.Body?, Bool) in
      if onlyIfSuspended, ticket.isWaiting { return (nil, false) }
      return (mailbox.withdraw(ticket), mailbox.canAcceptSuspended)
    }
    body?(CancellationError())
    if hasRoom { acceptSuspended() }
  }

  /// Accepts suspended events as long as there is room.
  func acceptSuspended() { for notify in core.post(enqueue: enqueue, { $0.acceptSuspended() }) { notify() } }
}
