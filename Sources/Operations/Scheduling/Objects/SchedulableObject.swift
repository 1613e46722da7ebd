/// Gives an object of any type a scheduler, on which alone it can be touched.
///
/// ```swift
/// let options = SchedulableObject(Options(), on: disk)
/// options.schedule { options in options.isVerbose = true }   // from anywhere
/// disk.schedule { print(options.object.isVerbose) }          // on the scheduler; elsewhere it traps
/// ```
///
/// The object need not be Sendable: it is handed over, and nobody else may hold it. It is released with this, where
/// that may be.
public final class SchedulableObject<Object>: @unchecked Sendable {
  /// Where the object lives.
  public let scheduler: SerialScheduler
  private let content: Object

  /// - Parameters:
  ///   - object: Is given away: the compiler sees to it that it is not used any more.
  ///   - scheduler: The main one, if none is named.
  public init(_ object: sending Object, on scheduler: SerialScheduler = .main) {
    content = object
    self.scheduler = scheduler
  }

  /// The object, for code that runs on the scheduler. Elsewhere it traps, in release builds, too.
  public var object: Object {
    if !scheduler.isCurrent { scheduler.report(SchedulerViolation("A “\(Object.self)”", of: scheduler, nil)) }
    return content
  }

  /// Has an event run on the scheduler, after everything that was scheduled before.
  ///
  /// - Returns: False if the scheduler has been shut down, or is full and refuses it. Then it is not run.
  @discardableResult
  public func schedule(
    _ event: @escaping @Sendable (Object) -> Void,
    file: StaticString = #fileID,
    line: UInt = #line
  ) -> Bool {
    scheduler.schedule({ event(self.content) }, file: file, line: line)
  }

  /// Has an event run that makes the object's earlier ones under the same key superfluous, as far as they have not
  /// begun.
  @discardableResult
  public func schedule(
    coalescing key: String,
    _ event: @escaping @Sendable (Object) -> Void,
    file: StaticString = #fileID,
    line: UInt = #line
  ) -> Bool {
    let key = EventKey(object: ObjectIdentifier(self), name: key)
    return scheduler.schedule(coalescing: key, { event(self.content) }, EventOrigin(file: file, line: line))
  }

  /// Has an event run when `delay` is over. The object lives until then.
  @discardableResult
  public func schedule(
    after delay: Duration,
    _ event: @escaping @Sendable (Object) -> Void,
    file: StaticString = #fileID,
    line: UInt = #line
  ) -> ScheduledEvent {
    scheduler.schedule(after: delay, { event(self.content) }, file: file, line: line)
  }

  /// Runs `work` on the scheduler, and hands what came of it to `deliver` on another.
  ///
  /// - Returns: False if it was refused. Then nothing is delivered.
  @discardableResult
  @_disfavoredOverload
  public func schedule<T: Sendable>(
    _ work: @escaping @Sendable (Object) throws -> T,
    deliverOn scheduler: SerialScheduler,
    _ deliver: @escaping @Sendable (Result<T, any Error>) -> Void,
    file: StaticString = #fileID,
    line: UInt = #line
  ) -> Bool {
    self.scheduler.schedule({ try work(self.content) }, deliverOn: scheduler, deliver, file: file, line: line)
  }

  /// Runs `work` on the scheduler, and hands what came of it to `deliver` on the main actor.
  ///
  /// - Returns: False if it was refused. Then nothing is delivered.
  @discardableResult
  public func schedule<T: Sendable>(
    _ work: @escaping @Sendable (Object) throws -> T,
    deliverOn main: MainDelivery,
    _ deliver: @escaping @MainActor @Sendable (Result<T, any Error>) -> Void,
    file: StaticString = #fileID,
    line: UInt = #line
  ) -> Bool {
    scheduler.schedule({ try work(self.content) }, deliverOn: main, deliver, file: file, line: line)
  }

  /// Runs `body` on the scheduler and returns what it returns, as ``SerialScheduler/run(_:file:line:)`` does.
  public func run<T: Sendable>(
    _ body: @escaping @Sendable (Object) throws -> T,
    file: StaticString = #fileID,
    line: UInt = #line
  ) async throws -> T {
    try await scheduler.run({ try body(self.content) }, file: file, line: line)
  }

  /// Has an event run as soon as there is room for it, as ``SerialScheduler/send(_:file:line:)`` does.
  public func send(
    _ event: @escaping @Sendable (Object) -> Void,
    file: StaticString = #fileID,
    line: UInt = #line
  ) async throws {
    try await scheduler.send({ event(self.content) }, file: file, line: line)
  }

  /// Runs `body` on the scheduler and blocks until then, as ``SerialScheduler/wait(timeout:_:file:line:)`` does.
  @available(*, noasync, message: "It would block a thread that tasks run on: await run(_:) instead.")
  public func wait<T: Sendable>(
    timeout: Duration? = nil,
    _ body: @escaping @Sendable (Object) throws -> T,
    file: StaticString = #fileID,
    line: UInt = #line
  ) throws -> T {
    try scheduler.wait(timeout: timeout, { try body(self.content) }, file: file, line: line)
  }
}
