extension SerialScheduler {
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
    _ deliver: @escaping @Sendable (Result<T, any Error>) -> Void,
    file: StaticString = #fileID,
    line: UInt = #line
  ) -> Bool {
    let origin = EventOrigin(file: file, line: line)
    let acceptance = accept(EventTicket(origin, isBounded: true)) { refusal in
      let result = EventTicket.outcome(refusal, work)
      let isDelivered = scheduler.post({ deliver(result) }, origin)
      if !isDelivered { scheduler.core.mailbox.withLock { $0.countDropped() } }
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
    _ deliver: @escaping @MainActor @Sendable (Result<T, any Error>) -> Void,
    file: StaticString = #fileID,
    line: UInt = #line
  ) -> Bool {
    schedule(
      work,
      deliverOn: SerialScheduler.main,
      { result in MainActor.assumeIsolated { deliver(result) } },
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
