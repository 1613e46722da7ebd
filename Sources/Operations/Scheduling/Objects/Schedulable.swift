/// An object that belongs to a scheduler, and is touched there only: for classes that cannot be actors.
///
/// ```swift
/// final class Printer: Schedulable, @unchecked Sendable {
///   let scheduler = SerialScheduler(name: "printer")
///   @Confined private var lines = 0
///
///   func show(_ line: String) {          // call it on the scheduler
///     lines += 1
///     print(line)
///   }
/// }
///
/// printer.schedule { printer in printer.show("Hello") }
/// ```
///
/// Objects on one scheduler call each other directly; those on others send events. An object of the main thread returns
/// ``SerialScheduler/main``.
public protocol Schedulable: AnyObject, Sendable {
  /// Has to be the same as long as the object lives.
  var scheduler: SerialScheduler { get }
}

extension Schedulable {
  /// Has an event run on the object's scheduler, after everything that was scheduled before. The object lives until
  /// then.
  ///
  /// - Returns: False if the scheduler has been shut down, or is full and refuses it. Then it is not run.
  @discardableResult
  public func schedule(
    _ event: @escaping @Sendable (Self) -> Void,
    file: StaticString = #fileID,
    line: UInt = #line
  ) -> Bool {
    scheduler.schedule({ event(self) }, file: file, line: line)
  }

  /// Has an event run unless the object is gone by then. It does not keep it alive.
  @discardableResult
  public func scheduleWeakly(
    _ event: @escaping @Sendable (Self) -> Void,
    file: StaticString = #fileID,
    line: UInt = #line
  ) -> Bool {
    scheduler.schedule({ [weak self] in if let self { event(self) } }, file: file, line: line)
  }

  /// Has an event run that makes the object's earlier ones under the same key superfluous, as far as they have not
  /// begun.
  @discardableResult
  public func schedule(
    coalescing key: String,
    _ event: @escaping @Sendable (Self) -> Void,
    file: StaticString = #fileID,
    line: UInt = #line
  ) -> Bool {
    let key = EventKey(object: ObjectIdentifier(self), name: key)
    return scheduler.schedule(coalescing: key, { event(self) }, EventOrigin(file: file, line: line))
  }

  /// Has an event run when `delay` is over. The object lives until then.
  @discardableResult
  public func schedule(
    after delay: Duration,
    _ event: @escaping @Sendable (Self) -> Void,
    file: StaticString = #fileID,
    line: UInt = #line
  ) -> ScheduledEvent {
    scheduler.schedule(after: delay, { event(self) }, file: file, line: line)
  }

  /// Runs `work` on the object's scheduler, and hands what came of it to `deliver` on another.
  ///
  /// - Returns: False if it was refused. Then nothing is delivered.
  @discardableResult
  @_disfavoredOverload
  public func schedule<T: Sendable>(
    _ work: @escaping @Sendable (Self) throws -> T,
    deliverOn scheduler: SerialScheduler,
    _ deliver: @escaping @Sendable (Result<T, any Error>) -> Void,
    file: StaticString = #fileID,
    line: UInt = #line
  ) -> Bool {
    self.scheduler.schedule({ try work(self) }, deliverOn: scheduler, deliver, file: file, line: line)
  }

  /// Runs `work` on the object's scheduler, and hands what came of it to `deliver` on the main actor.
  ///
  /// - Returns: False if it was refused. Then nothing is delivered.
  @discardableResult
  public func schedule<T: Sendable>(
    _ work: @escaping @Sendable (Self) throws -> T,
    deliverOn main: MainDelivery,
    _ deliver: @escaping @MainActor @Sendable (Result<T, any Error>) -> Void,
    file: StaticString = #fileID,
    line: UInt = #line
  ) -> Bool {
    scheduler.schedule({ try work(self) }, deliverOn: main, deliver, file: file, line: line)
  }

  /// Runs `body` on the object's scheduler and returns what it returns, as ``SerialScheduler/run(_:file:line:)`` does.
  public func run<T: Sendable>(
    _ body: @escaping @Sendable (Self) throws -> T,
    file: StaticString = #fileID,
    line: UInt = #line
  ) async throws -> T {
    try await scheduler.run({ try body(self) }, file: file, line: line)
  }

  /// Has an event run as soon as there is room for it, as ``SerialScheduler/send(_:file:line:)`` does.
  public func send(
    _ event: @escaping @Sendable (Self) -> Void,
    file: StaticString = #fileID,
    line: UInt = #line
  ) async throws {
    try await scheduler.send({ event(self) }, file: file, line: line)
  }

  /// Runs `body` on the object's scheduler and blocks until then, as ``SerialScheduler/wait(timeout:_:file:line:)``
  /// does.
  @available(*, noasync, message: "It would block a thread that tasks run on: await run(_:) instead.")
  public func wait<T: Sendable>(
    timeout: Duration? = nil,
    _ body: @escaping @Sendable (Self) throws -> T,
    file: StaticString = #fileID,
    line: UInt = #line
  ) throws -> T {
    try scheduler.wait(timeout: timeout, { try body(self) }, file: file, line: line)
  }
}
