/// A class whose objects belong to a scheduler and are accessed only on it.
///
/// Use this protocol for a class that cannot be an actor, because it has a superclass or synchronous protocols:
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
/// Objects on the same scheduler can call each other directly. To call an object on another scheduler, schedule an
/// event. An object of the user interface belongs to ``SerialScheduler/main``. The methods return and throw what the
/// methods of ``SerialScheduler`` with the same names do.
public protocol Schedulable: AnyObject, Sendable {
  /// The object's scheduler. It must not change.
  var scheduler: SerialScheduler { get }
}

extension Schedulable {
  /// Schedules an event to run on the object's scheduler after all earlier ones. Keeps the object alive until then.
  @discardableResult
  public func schedule(
    _ event: __owned @escaping @Sendable (Self) -> Void,
    file: StaticString = #fileID,
    line: UInt = #line
  ) -> Bool {
    scheduler.schedule({ event(self) }, file: file, line: line)
  }

  /// Schedules an event that does not keep the object alive. It does nothing if the object has been released.
  @discardableResult
  public func scheduleWeakly(
    _ event: __owned @escaping @Sendable (Self) -> Void,
    file: StaticString = #fileID,
    line: UInt = #line
  ) -> Bool {
    scheduler.schedule({ [weak self] in if let self { event(self) } }, file: file, line: line)
  }

  /// Schedules an event, replacing a waiting event of the object that has the same key.
  @discardableResult
  public func schedule(
    coalescing key: String,
    _ event: __owned @escaping @Sendable (Self) -> Void,
    file: StaticString = #fileID,
    line: UInt = #line
  ) -> Bool {
    let key = EventKey(object: ObjectIdentifier(self), name: key)
    return scheduler.schedule(coalescing: key, { event(self) }, EventOrigin(file: file, line: line))
  }

  /// Schedules an event to run after a delay. The object stays alive until the event has run or is cancelled.
  @discardableResult
  public func schedule(
    after delay: Duration,
    _ event: __owned @escaping @Sendable (Self) -> Void,
    file: StaticString = #fileID,
    line: UInt = #line
  ) -> ScheduledEvent {
    scheduler.schedule(after: delay, { event(self) }, file: file, line: line)
  }

  /// Runs `work` on the object's scheduler, and passes its result to `deliver` on another scheduler.
  @discardableResult
  @_disfavoredOverload
  public func schedule<T: Sendable>(
    _ work: @escaping @Sendable (Self) throws -> T,
    deliverOn scheduler: SerialScheduler,
    _ deliver: __owned @escaping @Sendable (Result<T, any Error>) -> Void,
    file: StaticString = #fileID,
    line: UInt = #line
  ) -> Bool {
    self.scheduler.schedule({ try work(self) }, deliverOn: scheduler, consume deliver, file: file, line: line)
  }

  /// Runs `work` on the object's scheduler, and passes its result to `deliver` on the main actor.
  @discardableResult
  public func schedule<T: Sendable>(
    _ work: @escaping @Sendable (Self) throws -> T,
    deliverOn main: MainDelivery,
    _ deliver: __owned @escaping @MainActor @Sendable (Result<T, any Error>) -> Void,
    file: StaticString = #fileID,
    line: UInt = #line
  ) -> Bool {
    scheduler.schedule({ try work(self) }, deliverOn: main, consume deliver, file: file, line: line)
  }

  /// Runs `body` on the object's scheduler and returns its result, as ``SerialScheduler/run(_:file:line:)`` does.
  public func run<T: Sendable>(
    _ body: @escaping @Sendable (Self) throws -> T,
    file: StaticString = #fileID,
    line: UInt = #line
  ) async throws -> T {
    try await scheduler.run({ try body(self) }, file: file, line: line)
  }

  /// Schedules an event as soon as there is room for it, as ``SerialScheduler/send(_:file:line:)`` does.
  public func send(
    _ event: @escaping @Sendable (Self) -> Void,
    file: StaticString = #fileID,
    line: UInt = #line
  ) async throws {
    try await scheduler.send({ event(self) }, file: file, line: line)
  }

  /// Runs `body` on the object's scheduler and blocks until it has run, as
  /// ``SerialScheduler/wait(timeout:_:file:line:)`` does.
  @available(*, noasync, message: "It blocks the thread. Use `await run(_:)` instead.")
  public func wait<T: Sendable>(
    timeout: Duration? = nil,
    _ body: @escaping @Sendable (Self) throws -> T,
    file: StaticString = #fileID,
    line: UInt = #line
  ) throws -> T {
    try scheduler.wait(timeout: timeout, { try body(self) }, file: file, line: line)
  }
}
