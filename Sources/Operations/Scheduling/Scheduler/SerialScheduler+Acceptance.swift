extension SerialScheduler {
  /// Posts an event that cannot be taken back, whatever the capacity.
  func post(_ event: @escaping @Sendable () -> Void, _ origin: EventOrigin) -> Bool {
    if !core.mode.isPlain { return postSlowly(measuringWait(of: event), origin) }
    return core.mailbox.withLock { $0.post(event, origin) } ?? postSlowly(event, origin)
  }

  /// Not inlined: it would cost the others registers.
  @inline(never)
  private func postSlowly(_ event: @escaping @Sendable () -> Void, _ origin: EventOrigin) -> Bool {
    core.post(enqueue: enqueue) { $0.post(event, origin) == true }
  }

  func accept(_ ticket: EventTicket, _ event: @escaping @Sendable () -> Void) -> Bool {
    accept(ticket, EventTicket.body(of: event)) == .accepted
  }

  /// Takes an event in, and tells those that have to go for it.
  func accept(
    _ ticket: EventTicket,
    handedOver: Bool = false,
    _ body: @escaping EventTicket.Body
  ) -> Mailbox.Acceptance {
    let body = core.mode.isPlain ? body : measuringWait(of: body)
    func accept(_ mailbox: inout Mailbox) -> (Mailbox.Acceptance, [EventTicket.Body]) {
      var dropped: [EventTicket.Body] = []
      return (mailbox.accept(ticket, body, handedOver: handedOver, dropping: &dropped), dropped)
    }
    let (acceptance, dropped) =
      handedOver ? core.mailbox.withLock { accept(&$0) } : core.post(enqueue: enqueue, accept)
    for body in dropped { body(OperationError.overflow(name, core.capacity)) }
    return acceptance
  }

  /// Takes an event in, or tells it why not.
  ///
  /// - Returns: Whether it has been accepted at once.
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

  /// Takes an event back, if it has not begun.
  func takeBack(_ ticket: EventTicket, fromDoorOnly: Bool = false) {
    let (body, canAdmit) = core.mailbox.withLock { mailbox -> (EventTicket.Body?, Bool) in
      if fromDoorOnly, ticket.isWaiting { return (nil, false) }
      return (mailbox.withdraw(ticket), mailbox.hasRoomForWaiting)
    }
    body?(CancellationError())
    if canAdmit { admit() }
  }

  /// Lets those in who have waited for room.
  func admit() { for isAccepted in core.post(enqueue: enqueue, { $0.admit() }) { isAccepted() } }
}
