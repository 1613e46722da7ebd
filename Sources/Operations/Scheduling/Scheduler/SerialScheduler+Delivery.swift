extension SerialScheduler {
  /// Runs `work` on this scheduler, and hands what came of it to `deliver` on another: mostly that of the caller.
  ///
  /// - Parameters:
  ///   - work: What to run here.
  ///   - scheduler: Where to deliver. Its capacity does not count there; if it has been shut down by then, nothing is
  ///     delivered, and ``SchedulerStatistics/eventsDropped`` has it.
  ///   - deliver: Gets the value of `work`, its error, or that it was not run: ``OperationError/Code/shutDown`` or
  ///     ``OperationError/Code/overflow``.
  ///   - file: Where this is, for the watchdog.
  ///   - line: Where this is, for the watchdog.
  /// - Returns: False if it was refused. Then nothing is delivered.
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
      if !isDelivered { scheduler.core.mailbox.withLock { $0.noteRefused() } }
    }
    return acceptance == .accepted
  }

  /// Runs `work` on this scheduler, and hands what came of it to `deliver` on the main actor, whose state it may touch.
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

/// Says that a result is delivered on the main actor: `deliverOn: .main`.
public struct MainDelivery: Sendable {
  /// The main actor.
  public static var main: Self { Self() }
}
