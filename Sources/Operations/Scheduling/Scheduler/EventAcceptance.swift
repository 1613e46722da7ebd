extension SerialScheduler {
  // The thread that runs an event also releases it. Each function therefore passes its only reference on, and the mailbox
  // takes it under the lock. The parameters are `__owned`, because Swift 6.3 releases `consuming` closures twice.

  func post(_ event: __owned @escaping @Sendable () -> Void, _ origin: EventOrigin) -> Bool {
    var event: (@Sendable () -> Void)? = consume event
    if mode.isPlain, let isAccepted = mailbox.withLock({ $0.post(&event, origin) }) { return isAccepted }
    return postSlowly(&event, origin)
  }

  // Not inlined, because inlining would cost the fast path registers.
  @inline(never)
  private func postSlowly(_ event: inout (@Sendable () -> Void)?, _ origin: EventOrigin) -> Bool {
    if mode.isPlain { return withOpenSegment { $0.post(&event, origin) == true } }
    guard let event = event.take() else { return false }
    return accept(EventTicket(origin), consume event)
  }

  func accept(_ ticket: EventTicket, _ event: __owned @escaping @Sendable () -> Void) -> Bool {
    accept(ticket, EventTicket.body(of: consume event)) == .accepted
  }

  /// Adds an event, and passes a refusal to the event that it replaces, if any.
  func accept(
    _ ticket: EventTicket,
    handedOver: Bool = false,
    _ body: __owned @escaping EventTicket.Body
  ) -> Mailbox.Acceptance {
    var body: EventTicket.Body? = mode.isPlain ? consume body : recordingWait(of: consume body)
    var (acceptance, dropped) =
      handedOver
      ? mailbox.withLock { $0.accept(ticket, &body, handedOver: true) }
      : withOpenSegment { $0.accept(ticket, &body) }
    refuse(&dropped, OperationError.overflow(name, capacity))
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

  /// Passes a refusal to an event that will not run, if any. The main scheduler also releases it.
  private func refuse(_ body: inout EventTicket.Body?, _ refusal: @autoclosure () -> any Error) {
    if body == nil { return }
    body?(refusal())
    if isMain { release(&body) }
  }

  /// Releases a value on the scheduler, even after a shutdown.
  func release<Value>(_ value: inout Value?) {
    if isCurrent || !mailbox.withLock({ $0.release(&value) }) { return }
    withOpenSegment(evenIfShutDown: true) { mailbox in
      mailbox.append(.mark { [self] in _ = self.mailbox.withLock { $0.takeReleased() } })
    }
  }

  /// Withdraws an event that has not begun. If `onlyIfSuspended` is true, an accepted event stays.
  func withdraw(_ ticket: EventTicket, onlyIfSuspended: Bool = false) {
    var (body, hasRoom) = mailbox.withLock { mailbox -> (EventTicket.Body?, Bool) in
      if onlyIfSuspended, ticket.isWaiting { return (nil, false) }
      return (mailbox.withdraw(ticket), mailbox.canAcceptSuspended)
    }
    refuse(&body, CancellationError())
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
