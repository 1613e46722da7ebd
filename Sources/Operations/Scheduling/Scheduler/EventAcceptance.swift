extension SerialScheduler {
  func post(_ event: @escaping @Sendable () -> Void, _ origin: EventOrigin) -> Bool {
    if mode.isPlain, let isAccepted = mailbox.withLock({ $0.post(event, origin) }) { return isAccepted }
    return postSlowly(event, origin)
  }

  // Not inlined, because inlining would cost the fast path registers.
  @inline(never)
  private func postSlowly(_ event: @escaping @Sendable () -> Void, _ origin: EventOrigin) -> Bool {
    if mode.isPlain { return withOpenSegment { $0.post(event, origin) == true } }
    return accept(EventTicket(origin), event)
  }

  func accept(_ ticket: EventTicket, _ event: @escaping @Sendable () -> Void) -> Bool {
    accept(ticket, EventTicket.body(of: event)) == .accepted
  }

  /// Adds an event, and passes a refusal to the event that it replaces, if any.
  func accept(
    _ ticket: EventTicket,
    handedOver: Bool = false,
    _ body: @escaping EventTicket.Body
  ) -> Mailbox.Acceptance {
    let body = mode.isPlain ? body : recordingWait(of: body)
    let (acceptance, dropped) =
      handedOver
      ? mailbox.withLock { $0.accept(ticket, body, handedOver: true) }
      : withOpenSegment { $0.accept(ticket, body) }
    dropped?(OperationError.overflow(name, capacity))
    return acceptance
  }

  /// Adds an event, and calls its body if the event is refused. Returns whether the event was accepted immediately.
  @discardableResult
  func submit(_ ticket: EventTicket, handedOver: Bool = false, _ body: @escaping EventTicket.Body) -> Bool {
    switch accept(ticket, handedOver: handedOver, body) {
    case .accepted: return true
    case .suspended: break
    case .shutDown: body(OperationError.shutDown(name))
    case .full: body(OperationError.overflow(name, capacity))
    case .withdrawn: body(CancellationError())
    }
    return false
  }

  /// Withdraws an event that has not begun. If `onlyIfSuspended` is true, an accepted event stays.
  func withdraw(_ ticket: EventTicket, onlyIfSuspended: Bool = false) {
    let (body, hasRoom) = mailbox.withLock { mailbox -> (EventTicket.Body?, Bool) in
      if onlyIfSuspended, ticket.isWaiting { return (nil, false) }
      return (mailbox.withdraw(ticket), mailbox.canAcceptSuspended)
    }
    body?(CancellationError())
    if hasRoom { acceptSuspended() }
  }

  func acceptSuspended() { for notify in withOpenSegment({ $0.acceptSuspended() }) { notify() } }
}

extension OperationError {
  static func shutDown(_ scheduler: String) -> OperationError {
    OperationError(.shutDown, "The event was not run because the scheduler “\(scheduler)” has been shut down.")
  }

  static func overflow(_ scheduler: String, _ capacity: EventCapacity?) -> OperationError {
    let limit = capacity.map { " (capacity \($0.count))" } ?? ""
    return OperationError(.overflow, "The event was not run because the scheduler “\(scheduler)” is full\(limit).")
  }
}
