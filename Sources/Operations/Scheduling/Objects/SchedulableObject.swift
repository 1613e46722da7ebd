/// An object of any type that belongs to a scheduler and is accessed only on it.
///
/// ```swift
/// let options = SchedulableObject(Options(), on: disk)
/// options.schedule { options in options.isVerbose = true }   // from anywhere
/// disk.schedule { print(options.object.isVerbose) }          // on the scheduler; elsewhere it traps
/// ```
///
/// The object need not be `Sendable`. The initializer takes ownership of the object, and the compiler rejects other
/// uses. The object is released on its scheduler, even after a shutdown, soon after its `SchedulableObject`. The methods
/// are those of a ``Schedulable`` object, with the same results.
public final class SchedulableObject<Object>: @unchecked Sendable {
  /// The object's scheduler.
  public let scheduler: SerialScheduler
  /// Nil only in `deinit`.
  private var content: Object?

  /// Creates a schedulable object that owns `object`.
  public init(_ object: sending Object, on scheduler: SerialScheduler = .main) {
    content = object
    self.scheduler = scheduler
  }

  /// The object. An access from outside the scheduler traps, even in release builds.
  public var object: Object {
    if !scheduler.isCurrent { scheduler.reportViolation("An object of type “\(Object.self)”", nil) }
    return content!
  }

  deinit { scheduler.release(&content) }

  /// Schedules an event to run on the object's scheduler after all earlier ones.
  @discardableResult
  public func schedule(
    _ event: __owned @escaping @Sendable (Object) -> Void,
    file: StaticString = #fileID,
    line: UInt = #line
  ) -> Bool {
    scheduler.schedule({ event(self.object) }, file: file, line: line)
  }

  /// Schedules an event, replacing a waiting event of the object that has the same key.
  @discardableResult
  public func schedule(
    coalescing key: String,
    _ event: __owned @escaping @Sendable (Object) -> Void,
    file: StaticString = #fileID,
    line: UInt = #line
  ) -> Bool {
    let key = EventKey(object: ObjectIdentifier(self), name: key)
    return scheduler.schedule(coalescing: key, { event(self.object) }, EventOrigin(file: file, line: line))
  }

  /// Schedules an event to run after a delay. The object stays alive until the event has run or is cancelled.
  @discardableResult
  public func schedule(
    after delay: Duration,
    _ event: __owned @escaping @Sendable (Object) -> Void,
    file: StaticString = #fileID,
    line: UInt = #line
  ) -> ScheduledEvent {
    scheduler.schedule(after: delay, { event(self.object) }, file: file, line: line)
  }

  /// Runs `work` on the object's scheduler, and passes its result to `deliver` on another scheduler.
  @discardableResult
  @_disfavoredOverload
  public func schedule<T: Sendable>(
    _ work: @escaping @Sendable (Object) throws -> T,
    deliverOn scheduler: SerialScheduler,
    _ deliver: __owned @escaping @Sendable (Result<T, any Error>) -> Void,
    file: StaticString = #fileID,
    line: UInt = #line
  ) -> Bool {
    self.scheduler.schedule({ try work(self.object) }, deliverOn: scheduler, consume deliver, file: file, line: line)
  }

  /// Runs `work` on the object's scheduler, and passes its result to `deliver` on the main actor.
  @discardableResult
  public func schedule<T: Sendable>(
    _ work: @escaping @Sendable (Object) throws -> T,
    deliverOn main: MainDelivery,
    _ deliver: __owned @escaping @MainActor @Sendable (Result<T, any Error>) -> Void,
    file: StaticString = #fileID,
    line: UInt = #line
  ) -> Bool {
    scheduler.schedule({ try work(self.object) }, deliverOn: main, consume deliver, file: file, line: line)
  }

  /// Runs `body` on the object's scheduler and returns its result, as ``SerialScheduler/run(_:file:line:)`` does.
  public func run<T: Sendable>(
    _ body: @escaping @Sendable (Object) throws -> T,
    file: StaticString = #fileID,
    line: UInt = #line
  ) async throws -> T {
    try await scheduler.run({ try body(self.object) }, file: file, line: line)
  }

  /// Schedules an event as soon as there is room for it, as ``SerialScheduler/send(_:file:line:)`` does.
  public func send(
    _ event: @escaping @Sendable (Object) -> Void,
    file: StaticString = #fileID,
    line: UInt = #line
  ) async throws {
    try await scheduler.send({ event(self.object) }, file: file, line: line)
  }

  /// Runs `body` on the object's scheduler and blocks until it has run.
  @available(*, noasync, message: "It blocks the thread. Use `await run(_:)` instead.")
  public func wait<T: Sendable>(
    timeout: Duration? = nil,
    _ body: @escaping @Sendable (Object) throws -> T,
    file: StaticString = #fileID,
    line: UInt = #line
  ) throws -> T {
    try scheduler.wait(timeout: timeout, { try body(self.object) }, file: file, line: line)
  }
}
