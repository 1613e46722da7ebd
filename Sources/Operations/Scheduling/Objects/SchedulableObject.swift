/// An object of any type that belongs to a scheduler and is accessed only on it.
///
/// ```swift
/// let options = SchedulableObject(Options(), on: disk)
/// options.schedule { options in options.isVerbose = true }   // from anywhere
/// disk.schedule { print(options.object.isVerbose) }          // on the scheduler; elsewhere it traps
/// ```
///
/// The object need not be `Sendable`. The initializer takes ownership of the object, and the compiler rejects other
/// uses. The object is released on its scheduler, even after a shutdown, soon after its `SchedulableObject`. Any other
/// event of its scheduler, such as a delayed one, reads ``object``.
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

  /// Runs `body` on the object's scheduler and returns its result, as ``SerialScheduler/run(_:file:line:)`` does.
  public func run<T: Sendable>(
    _ body: @escaping @Sendable (Object) throws -> T,
    file: StaticString = #fileID,
    line: UInt = #line
  ) async throws -> T {
    try await scheduler.run({ try body(self.object) }, file: file, line: line)
  }
}
