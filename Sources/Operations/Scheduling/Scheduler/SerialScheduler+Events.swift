extension SerialScheduler {
  /// Schedules an event to run after all earlier ones.
  ///
  /// The event never runs inline, even if the caller is on the scheduler. Its closure is released there when it has run.
  ///
  /// - Returns: False if the event will not run, because the scheduler has been shut down or is full.
  /// - Complexity: O(1), about a tenth of a microsecond, and on ``main`` about one. An operation is created only if no
  ///   other event waits.
  @discardableResult
  public func schedule(
    _ event: __owned @escaping @Sendable () -> Void,
    file: StaticString = #fileID,
    line: UInt = #line
  ) -> Bool {
    let origin = EventOrigin(file: file, line: line)
    if capacity != nil { return accept(EventTicket(origin, capacity: .counted), consume event) }
    return post(consume event, origin)
  }

  /// Schedules an event, replacing a waiting event that has the same key.
  ///
  /// Use a key for an event that shows a state, such as “reload”. However often it is scheduled while it waits, it runs
  /// once, in the place of the first one, so that frequent calls do not postpone it.
  ///
  /// - Returns: False if the event will not run, because the scheduler has been shut down or is full.
  @discardableResult
  public func schedule(
    coalescing key: String,
    _ event: __owned @escaping @Sendable () -> Void,
    file: StaticString = #fileID,
    line: UInt = #line
  ) -> Bool {
    schedule(coalescing: EventKey(object: nil, name: key), consume event, EventOrigin(file: file, line: line))
  }

  func schedule(
    coalescing key: EventKey,
    _ event: __owned @escaping @Sendable () -> Void,
    _ origin: EventOrigin
  ) -> Bool {
    accept(EventTicket(origin, key: key, capacity: .counted), consume event)
  }

  /// Schedules an event on the main actor. The event can access the actor's state.
  ///
  /// - Returns: True, because the main scheduler is never shut down.
  @discardableResult
  public static func scheduleOnMain(
    _ event: __owned @escaping @MainActor @Sendable () -> Void,
    file: StaticString = #fileID,
    line: UInt = #line
  ) -> Bool {
    main.schedule(onMain(consume event), file: file, line: line)
  }

  /// Schedules an event on the main actor, replacing a waiting event that has the same key.
  ///
  /// Use this method to show only the latest of many changes in a view. All callers share the keys of the main
  /// scheduler, so two views must use different keys. A ``Schedulable`` object has keys of its own.
  ///
  /// - Returns: True, because the main scheduler is never shut down.
  @discardableResult
  public static func scheduleOnMain(
    coalescing key: String,
    _ event: __owned @escaping @MainActor @Sendable () -> Void,
    file: StaticString = #fileID,
    line: UInt = #line
  ) -> Bool {
    main.schedule(coalescing: key, onMain(consume event), file: file, line: line)
  }

  private func onMain<T: Sendable>(_ body: __owned @escaping @MainActor @Sendable (T) -> Void) -> @Sendable (T) -> Void
  {
    { value in MainActor.assumeIsolated { body(value) } }
  }

  static func onMain(_ event: __owned @escaping @MainActor @Sendable () -> Void) -> @Sendable () -> Void {
    { MainActor.assumeIsolated(event) }
  }

  // MARK: Awaiting

  /// Runs `body` on the scheduler after all earlier events, and returns its result.
  ///
  /// If the task is cancelled before `body` has begun, `body` does not run.
  ///
  /// - Throws: The error of `body`, ``OperationError/Code/shutDown`` if the scheduler has been shut down or discards
  ///   its events, ``OperationError/Code/overflow`` if the scheduler is full, ``OperationError/Code/waitCycle`` if the
  ///   wait can never end, or `CancellationError`.
  public func run<T: Sendable>(
    _ body: @escaping @Sendable () throws -> T,
    file: StaticString = #fileID,
    line: UInt = #line
  ) async throws -> T {
    let ticket = EventTicket(EventOrigin(file: file, line: line), capacity: .suspending())
    // The events of the main thread wait for no operation of its queue.
    let queue = self === SerialScheduler.main ? nil : queue
    let giveUp = { @Sendable in self.withdraw(ticket) }
    return try await waitingForTurn(in: queue, giveUp: giveUp) {
      try await withTaskCancellationHandler {
        try await withCheckedThrowingContinuation { continuation in
          submit(ticket) { refusal in
            // Not by a `Result`, whose type depends on `T` and is looked up when the program runs.
            if let refusal { return continuation.resume(throwing: refusal) }
            do { continuation.resume(returning: try body()) } catch { continuation.resume(throwing: error) }
          }
        }
      } onCancel: {
        withdraw(ticket)
      }
    }
  }

  /// Schedules an event as soon as the scheduler has room for it.
  ///
  /// If the policy of the scheduler's ``EventCapacity`` is ``EventCapacity/Policy/suspend``, the method suspends while
  /// the scheduler is full. It returns as soon as the scheduler has accepted the event, before the event has run.
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
      capacity: .suspending(onAccept: { sender.withLock { $0.take() }?.resume() })
    )
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        sender.withLock { $0 = continuation }
        let fails = capacity?.policy == .fail
        let isAccepted = submit(ticket) { refusal in
          guard let refusal else { return event() }
          // By any other policy, an event is dropped only after it has been accepted.
          let wasAccepted = !fails && OperationError.Code.overflow ~= refusal
          sender.withLock { $0.take() }?.resume(with: wasAccepted ? .success(()) : .failure(refusal))
        }
        if isAccepted { sender.withLock { $0.take() }?.resume() }
      }
    } onCancel: {
      // An accepted event runs even if the sender is cancelled.
      withdraw(ticket, onlyIfSuspended: true)
    }
  }

  // MARK: Delivering

  /// Runs `work` on this scheduler, and passes its result to `deliver` on another scheduler.
  ///
  /// - Parameters:
  ///   - work: The closure to run on this scheduler.
  ///   - scheduler: The scheduler that receives the result, usually the caller's. Its capacity does not apply. If it
  ///     has been shut down, the result is dropped and counted by ``SchedulerStatistics/eventsDropped``.
  ///   - deliver: Receives the value or error of `work`. If `work` is accepted but does not run, `deliver` receives
  ///     ``OperationError/Code/shutDown`` or ``OperationError/Code/overflow``.
  ///   - file: The location that a watchdog reports.
  ///   - line: The location that a watchdog reports.
  /// - Returns: False if the scheduler refused `work`. `deliver` is not called in that case.
  @discardableResult
  @_disfavoredOverload
  public func schedule<T: Sendable>(
    _ work: @escaping @Sendable () throws -> T,
    deliverOn scheduler: SerialScheduler,
    _ deliver: __owned @escaping @Sendable (Result<T, any Error>) -> Void,
    file: StaticString = #fileID,
    line: UInt = #line
  ) -> Bool {
    let origin = EventOrigin(file: file, line: line)
    let deliver = SchedulableObject(consume deliver, on: scheduler)
    let acceptance = accept(EventTicket(origin, capacity: .counted)) { refusal in
      let result = EventTicket.outcome(refusal, work)
      let isDelivered = scheduler.post({ deliver.object(result) }, origin)
      if !isDelivered { scheduler.mailbox.withLock { $0.eventsDropped += 1 } }
    }
    return acceptance == .accepted
  }

  /// Runs `work` on this scheduler, and passes its result to `deliver` on the main actor.
  ///
  /// ```swift
  /// disk.schedule({ try load(file) }, deliverOn: .main, { result in viewModel.show(result) })
  /// ```
  @discardableResult
  public func schedule<T: Sendable>(
    _ work: @escaping @Sendable () throws -> T,
    deliverOn main: MainDelivery,
    _ deliver: __owned @escaping @MainActor @Sendable (Result<T, any Error>) -> Void,
    file: StaticString = #fileID,
    line: UInt = #line
  ) -> Bool {
    schedule(
      work,
      deliverOn: SerialScheduler.main,
      onMain(consume deliver),
      file: file,
      line: line
    )
  }
}

/// The main actor, as the place to deliver a result: `deliverOn: .main`.
public struct MainDelivery: Sendable {
  /// The main actor.
  public static var main: Self { Self() }
}
