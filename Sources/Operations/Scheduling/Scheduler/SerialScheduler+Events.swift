extension SerialScheduler {
  // MARK: Scheduling

  /// Schedules an event to run after all earlier ones.
  ///
  /// The event never runs inline, even if the caller is on the scheduler. The closure is released as soon as it has
  /// run.
  ///
  /// - Returns: False if the event will not run, because the scheduler has been shut down or is full.
  /// - Complexity: O(1), about a tenth of a microsecond. No operation is created while other events wait.
  @discardableResult
  public func schedule(
    _ event: @escaping @Sendable () -> Void,
    file: StaticString = #fileID,
    line: UInt = #line
  ) -> Bool {
    let origin = EventOrigin(file: file, line: line)
    if core.capacity != nil { return accept(EventTicket(origin, isBounded: true), event) }
    return post(event, origin)
  }

  /// Schedules an event, replacing an earlier event under the same key that has not begun.
  ///
  /// Use this for events that show a state, such as “reload”: they run once, however often they are scheduled. The
  /// event runs after everything that was scheduled before the latest call, so frequent calls postpone it.
  ///
  /// - Returns: False if the event will not run, because the scheduler has been shut down or is full.
  @discardableResult
  public func schedule(
    coalescing key: String,
    _ event: @escaping @Sendable () -> Void,
    file: StaticString = #fileID,
    line: UInt = #line
  ) -> Bool {
    schedule(coalescing: EventKey(object: nil, name: key), event, EventOrigin(file: file, line: line))
  }

  func schedule(coalescing key: EventKey, _ event: @escaping @Sendable () -> Void, _ origin: EventOrigin) -> Bool {
    accept(EventTicket(origin, key: key, isBounded: true), event)
  }

  /// Schedules an event on the main actor, whose state it may access.
  ///
  /// - Returns: True, because the main scheduler is never shut down.
  @discardableResult
  public static func scheduleOnMain(
    _ event: @escaping @MainActor @Sendable () -> Void,
    file: StaticString = #fileID,
    line: UInt = #line
  ) -> Bool {
    main.schedule({ MainActor.assumeIsolated(event) }, file: file, line: line)
  }

  /// Schedules an event on the main actor, replacing an earlier event under the same key that has not begun.
  ///
  /// With it a view shows only the latest of many changes. All callers share the keys of the main scheduler, so two
  /// views must use different keys. ``Schedulable`` and ``SchedulableObject`` have keys of their own for each object.
  ///
  /// - Returns: True, because the main scheduler is never shut down.
  @discardableResult
  public static func scheduleOnMain(
    coalescing key: String,
    _ event: @escaping @MainActor @Sendable () -> Void,
    file: StaticString = #fileID,
    line: UInt = #line
  ) -> Bool {
    main.schedule(coalescing: key, { MainActor.assumeIsolated(event) }, file: file, line: line)
  }

  // MARK: Awaiting

  /// Runs `body` on the scheduler after all earlier events, and returns its result.
  ///
  /// If the task is cancelled before `body` has begun, `body` does not run.
  ///
  /// - Throws: The error of `body`, ``OperationError/Code/shutDown`` if the scheduler has been shut down or discards
  ///   its events, ``OperationError/Code/overflow`` if the scheduler is full, or `CancellationError`.
  public func run<T: Sendable>(
    _ body: @escaping @Sendable () throws -> T,
    file: StaticString = #fileID,
    line: UInt = #line
  ) async throws -> T {
    let ticket = EventTicket(
      EventOrigin(file: file, line: line),
      isBounded: true,
      maySuspend: true
    )
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        submit(ticket) { refusal in continuation.resume(with: EventTicket.outcome(refusal, body)) }
      }
    } onCancel: {
      takeBack(ticket)
    }
  }

  /// Schedules an event as soon as the scheduler has room for it.
  ///
  /// The method suspends while the scheduler is full, if its ``EventCapacity`` uses ``EventCapacity/Policy/suspend``.
  /// It returns when the event has been accepted, not when it has run.
  ///
  /// - Throws: ``OperationError/Code/shutDown``, ``OperationError/Code/overflow`` if the policy is
  ///   ``EventCapacity/Policy/fail``, or `CancellationError` if the task is cancelled before there is room.
  public func send(
    _ event: @escaping @Sendable () -> Void,
    file: StaticString = #fileID,
    line: UInt = #line
  ) async throws {
    let sender = Locked<CheckedContinuation<Void, any Error>?>(nil)
    let ticket = EventTicket(
      EventOrigin(file: file, line: line),
      isBounded: true,
      maySuspend: true,
      onAccept: { sender.withLock { $0.take() }?.resume() }
    )
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        sender.withLock { $0 = continuation }
        let isAccepted = submit(ticket) { refusal in
          if let refusal { sender.withLock { $0.take() }?.resume(throwing: refusal) } else { event() }
        }
        if isAccepted { sender.withLock { $0.take() }?.resume() }
      }
    } onCancel: {
      // An accepted event runs even if the sender is cancelled.
      takeBack(ticket, onlyIfSuspended: true)
    }
  }
}
