import Foundation

extension SerialScheduler {
  /// Runs `body` on the scheduler and blocks the thread until it has been run. On the scheduler itself `body` is run at
  /// once.
  ///
  /// For code that cannot be asynchronous; `await` ``run(_:file:line:)`` where it can. Two schedulers may wait for each
  /// other: while one is blocked here, it runs what is waited for on its behalf, so that A, which waits for B, which
  /// waits for A, goes on. Other events of A stay in line until the end of the one that waits, or they would change A's
  /// objects in the middle of it.
  ///
  /// A blocked scheduler keeps its thread, and the system has a limited number of them (on Linux 255 for each quality of
  /// service). While 200 schedulers are blocked, a further one cannot wait for a scheduler that would need a thread of
  /// its own: that throws ``OperationError/Code/overflow`` instead of hanging silently. Blocked threads that belong to
  /// no scheduler are not counted.
  ///
  /// No ``EventCapacity`` counts it: a producer that is refused may wait instead, and go on when there is less to do.
  ///
  /// - Parameters:
  ///   - timeout: How long to wait for the end of `body`. One that has not begun by then is not run.
  ///   - body: What to run.
  ///   - file: Where this is, for the watchdog.
  ///   - line: Where this is, for the watchdog.
  /// - Throws: What `body` throws; ``OperationError/Code/timedOut``; ``OperationError/Code/shutDown``;
  ///   ``OperationError/Code/overflow``, if too many schedulers are blocked; ``OperationError/Code/waitCycle``, with the
  ///   names, for a wait that could never end: the later of two that cross, whatever their timeouts, and one that comes
  ///   back to an actor in the middle of its job, where nothing else may run.
  @available(*, noasync, message: "It would block a thread that tasks run on: await run(_:) instead.")
  public func wait<T: Sendable>(
    timeout: Duration? = nil,
    _ body: @escaping @Sendable () throws -> T,
    file: StaticString = #fileID,
    line: UInt = #line
  ) throws -> T {
    if isCurrent { return try body() }
    let link = WaitLink(to: self)
    let ticket = EventTicket(EventOrigin(file: file, line: line), link: link)
    let outcome = Locked<Result<T, any Error>?>(nil)
    try begin(link, ticket) { refusal in
      let result = EventTicket.outcome(refusal, body)
      outcome.withLock { $0 = result }
      WaitGraph.shared.withLock { $0.finish(link) }
      link.wake()
    }
    block(link, timeout)
    if let result = outcome.withLock({ $0 }) { return try result.get() }
    let hasBegun = core.mailbox.withLock { $0.withdraw(ticket) } == nil
    // It may have come to its end while we turned away.
    if let result = outcome.withLock({ $0 }) { return try result.get() }
    throw OperationError.waitTimedOut(name, after: timeout ?? .zero, hasBegun: hasBegun)
  }

  /// Has the event of a wait queued, or handed over to a thread of this scheduler that waits for us.
  private func begin(_ link: WaitLink, _ ticket: EventTicket, _ body: @escaping EventTicket.Body) throws {
    let decision = WaitGraph.shared.withLock { $0.begin(link) }
    switch decision {
    case .post, .handOver: break
    case .circle(let circle): throw OperationError.waitCycle(circle)
    case .refuse(let count): throw OperationError.tooManyWaits(from: link.waiter?.name, for: name, count)
    }
    let isHandedOver = if case .handOver = decision { true } else { false }
    guard accept(ticket, handedOver: isHandedOver, body) == .accepted else {
      end(link)
      throw OperationError.shutDown(name)
    }
    if isHandedOver { deliver(ticket) }
  }

  /// Hands an event over, which may be too late.
  private func deliver(_ ticket: EventTicket) {
    guard let link = ticket.link else { return }
    switch WaitGraph.shared.withLock({ $0.deliver(ticket, of: link) }) {
    case .handOver(let server): server.wake()
    case .post, .refuse: core.post(always: true, enqueue: enqueue) { $0.append(ticket) }
    case .circle(let circle):
      core.mailbox.withLock { $0.withdraw(ticket) }?(OperationError.waitCycle(circle))
    }
  }

  /// Returns when the wait has ended, or its time is over. Serves meanwhile.
  private func block(_ link: WaitLink, _ timeout: Duration?) {
    let deadline = timeout.map(DispatchTime.after) ?? .distantFuture
    waiting: while link.sleep(until: deadline) {
      switch WaitGraph.shared.withLock({ $0.step(link) }) {
      case .end: break waiting
      case .serve(let ticket): link.waiter?.serve(ticket)
      case .sleep: break
      }
    }
    end(link)
  }

  private func end(_ link: WaitLink) {
    for ticket in WaitGraph.shared.withLock({ $0.end(link) }) { link.waiter?.deliver(ticket) }
  }
}

extension DispatchTime {
  fileprivate static func after(_ duration: Duration) -> DispatchTime {
    let seconds = duration / .seconds(1)
    // Dispatch cannot count further than its clock, some centuries.
    return seconds < 1e9 ? .now() + max(seconds, 0) : .distantFuture
  }
}
