import Foundation

/// A call of ``SerialScheduler/wait(timeout:_:file:line:)``, which blocks its thread. The ``WaitGraph`` owns its state.
final class WaitLink: @unchecked Sendable {
  /// The innermost wait whose body the current thread is running.
  private static let innermost = ThreadLocal<WaitLink>()

  let waiter: SerialScheduler?
  let target: SerialScheduler
  let previous: WaitLink?
  let ticket: EventTicket

  /// Whether the wait continues. A wait ends when its body has run or its timeout has expired.
  var isOpen = true
  /// The wait whose thread runs the body, or nil if the body goes to the mailbox.
  var server: WaitLink?
  /// The waits whose bodies the blocked thread runs. Nil in a job of an actor, in which no other code may run.
  var inbox: ArrayDeque<WaitLink>?

  private let signal = DispatchSemaphore(value: 0)

  /// By default, a wait of the current code.
  init(
    from waiter: SerialScheduler? = .current,
    to target: SerialScheduler,
    after previous: WaitLink? = WaitLink.innermost.current,
    _ origin: EventOrigin = EventOrigin()
  ) {
    self.waiter = waiter
    self.target = target
    self.previous = previous
    ticket = EventTicket(origin)
    inbox = TaskContext.isInJob ? nil : ArrayDeque()
  }

  func wake() { signal.signal() }

  /// Returns false if the deadline passes before ``wake()`` is called.
  func sleep(until deadline: DispatchTime) -> Bool { signal.wait(timeout: deadline) == .success }

  func run<Result>(_ body: () throws -> Result) rethrows -> Result { try Self.innermost.withValue(self, body) }
}

extension SerialScheduler {
  /// Runs `body` on the scheduler and blocks the thread until `body` has run.
  ///
  /// Use this method in code that cannot be asynchronous. Everywhere else, `await` ``run(_:file:line:)``. On the
  /// scheduler itself, `body` runs immediately.
  ///
  /// No ``EventCapacity`` applies to this method. A producer whose event is refused can call `wait` instead, which
  /// blocks until the earlier events have run.
  ///
  /// ## Deadlocks
  ///
  /// Two schedulers can wait for each other. If an event of A waits for a body on B, that body can wait for a body on
  /// A. The blocked thread of A runs the second body, so both waits end. Other events of A run after the event that
  /// waits, because they would otherwise change A's objects in the middle of that event.
  ///
  /// A wait that could never end throws ``OperationError/Code/waitCycle``, whose message names the schedulers. If
  /// unrelated events on A and B wait for each other's schedulers, the later wait throws, whatever the timeouts. If a
  /// job of an actor waits for a body that waits for the actor's scheduler, the second wait also throws, because no
  /// other code may run in the middle of a job.
  ///
  /// ## Threads
  ///
  /// A blocked scheduler keeps its thread, and the system limits the number of threads (on Linux to 255 for each
  /// quality of service). While 200 schedulers are blocked, another scheduler can wait only for a body that a blocked
  /// thread runs. Its other waits throw ``OperationError/Code/overflow``, because their bodies might never get a
  /// thread. Blocked threads that belong to no scheduler are not counted.
  ///
  /// A blocked thread does not lend its priority to the scheduler. Create a scheduler that the main thread waits for with
  /// the quality of service `userInitiated`.
  ///
  /// - Parameters:
  ///   - timeout: The longest time to wait for `body` to finish, or nil to wait without a limit. If `body` has not
  ///     begun before the timeout, it does not run.
  ///   - body: The closure to run on the scheduler.
  ///   - file: The location that a watchdog reports.
  ///   - line: The location that a watchdog reports.
  /// - Throws: The error of `body`, ``OperationError/Code/timedOut``, ``OperationError/Code/shutDown``,
  ///   ``OperationError/Code/overflow`` if too many schedulers are blocked, or ``OperationError/Code/waitCycle`` if
  ///   the wait could never end.
  @available(*, noasync, message: "It would block a thread that tasks run on: await run(_:) instead.")
  public func wait<T: Sendable>(
    timeout: Duration? = nil,
    _ body: @escaping @Sendable () throws -> T,
    file: StaticString = #fileID,
    line: UInt = #line
  ) throws -> T {
    if isCurrent { return try body() }
    let link = WaitLink(to: self, EventOrigin(file: file, line: line))
    let outcome = Locked<Result<T, any Error>?>(nil)
    let server = try WaitGraph.shared.withLock { try $0.begin(link) }
    let isAccepted = submit(link.ticket, handedOver: server != nil) { refusal in
      let result = EventTicket.outcome(refusal) { try link.run(body) }
      outcome.withLock { $0 = result }
      WaitGraph.shared.withLock { _ in link.isOpen = false }
      link.wake()
    }
    if isAccepted, server != nil { deliver(link) }
    block(link, timeout)
    if let result = outcome.withLock({ $0 }) { return try result.get() }
    let hasBegun = mailbox.withLock { $0.withdraw(link.ticket) } == nil
    // The body may have finished after the timeout expired.
    if let result = outcome.withLock({ $0 }) { return try result.get() }
    let state = hasBegun ? "The event is still running." : "The event had not begun and will not run."
    throw OperationError(
      .timedOut,
      "Waiting for the scheduler “\(name)” took longer than \((timeout ?? .zero).text). \(state)"
    )
  }

  private func deliver(_ link: WaitLink) {
    do {
      if let server = try WaitGraph.shared.withLock({ try $0.deliver(link) }) { return server.wake() }
      withOpenSegment(evenIfShutDown: true) { $0.append(.ticket(link.ticket)) }
    } catch {
      mailbox.withLock { $0.withdraw(link.ticket) }?(error)
    }
  }

  /// Runs the events that are handed over to the blocked thread until the wait ends or the timeout expires.
  private func block(_ link: WaitLink, _ timeout: Duration?) {
    let seconds = timeout.map { $0 / .seconds(1) } ?? .infinity
    // Dispatch cannot represent a deadline beyond the range of its clock, which is several centuries.
    let deadline: DispatchTime = seconds < 1e9 ? .now() + max(seconds, 0) : .distantFuture
    // Each wake-up follows either one event that was handed over or the end of the wait.
    while link.sleep(until: deadline), let next = WaitGraph.shared.withLock({ $0.next(for: link) }) {
      link.waiter?.serve(next.ticket)
    }
    for next in WaitGraph.shared.withLock({ $0.end(link) }) { link.waiter?.deliver(next) }
  }
}
