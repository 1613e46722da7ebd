extension SerialScheduler {
  /// Has an event run, after everything that was scheduled before.
  ///
  /// The closure is released as soon as it has been run.
  ///
  /// - Returns: False if the scheduler has been shut down, or is full and refuses it. Then it is not run.
  /// - Complexity: Constant, and about a tenth of a microsecond: no operation is made as long as there is something to
  ///   run.
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

  /// Has an event run that makes the earlier ones under the same key superfluous, as far as they have not begun: only
  /// the latest is run, after everything that was scheduled before it.
  ///
  /// For what only shows a state, such as “reload”: however often it is scheduled, it is run once for all of them. As
  /// long as newer ones come before its turn, it is put off.
  ///
  /// - Returns: False if the scheduler has been shut down, or is full and refuses it. Then it is not run.
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

  /// Has an event run that may touch what belongs to the main actor.
  ///
  /// - Returns: True: the main scheduler is never shut down.
  @discardableResult
  public static func scheduleOnMain(
    _ event: @escaping @MainActor @Sendable () -> Void,
    file: StaticString = #fileID,
    line: UInt = #line
  ) -> Bool {
    main.schedule({ MainActor.assumeIsolated(event) }, file: file, line: line)
  }

  /// Has an event run on the main actor that makes the earlier ones under the same key superfluous, as far as they have
  /// not begun: so a view shows the latest of many changes.
  ///
  /// The keys are those of the whole main scheduler: two views that mean an update each need two of them. An object's
  /// own keys are those of ``Schedulable`` and ``SchedulableObject``.
  ///
  /// - Returns: True: the main scheduler is never shut down.
  @discardableResult
  public static func scheduleOnMain(
    coalescing key: String,
    _ event: @escaping @MainActor @Sendable () -> Void,
    file: StaticString = #fileID,
    line: UInt = #line
  ) -> Bool {
    main.schedule(coalescing: key, { MainActor.assumeIsolated(event) }, file: file, line: line)
  }

  /// Runs `body` on the scheduler, after everything that was scheduled before, and returns what it returns.
  ///
  /// Cancelling the task before `body` has begun keeps it from being run.
  ///
  /// - Throws: What `body` throws; ``OperationError/Code/shutDown`` if the scheduler has been shut down, or discards
  ///   what it has; ``OperationError/Code/overflow`` if its capacity does not allow it; `CancellationError`.
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

  /// Schedules an event as soon as there is room for it, where the scheduler's ``EventCapacity`` says
  /// ``EventCapacity/Policy/suspend``. It returns when the event has been accepted, not when it has been run.
  ///
  /// - Throws: ``OperationError/Code/shutDown``; ``OperationError/Code/overflow`` if the policy is to fail;
  ///   `CancellationError` if the task is cancelled before there is room.
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
      // Once it has been accepted, it is run.
      takeBack(ticket, fromDoorOnly: true)
    }
  }
}
