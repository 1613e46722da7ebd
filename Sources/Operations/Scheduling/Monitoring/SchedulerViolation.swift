/// An access to an object or property from outside its scheduler.
public struct SchedulerViolation: Sendable, CustomStringConvertible {
  /// What was accessed: a property and its type, the type of a scheduled object, or the message of the check.
  public let subject: String
  /// The name of the scheduler that the subject belongs to.
  public let scheduler: String
  /// The name of the scheduler on which the access happened, or nil if it happened on no scheduler.
  public let currentScheduler: String?
  /// The location of the check or of the property's declaration, or nil for a scheduled object.
  public let origin: EventOrigin?

  public var description: String {
    "\(subject) belongs to the scheduler “\(scheduler)” but was used \(Self.place(currentScheduler)). Schedule an event on "
      + "“\(scheduler)” instead."
  }

  static func place(_ scheduler: String?) -> String {
    scheduler.map { "on the scheduler “\($0)”" } ?? "on no scheduler"
  }
}

extension SerialScheduler {
  /// The closure that receives violations, or nil to trap at a violation. The default is nil.
  ///
  /// Set a handler while you adapt an existing program to schedulers. The handler can log violations, and the program
  /// continues at its own risk. The handler applies to all schedulers, and runs on the thread of the violation. Checks
  /// by the Swift runtime, such as `assumeIsolated`, still trap.
  public static var violationHandler: (@Sendable (SchedulerViolation) -> Void)? {
    get { handler.withLock { $0.body } }
    set {
      // The old handler is released after the lock, because releasing what its closure captures can run any code.
      var other = newValue
      handler.withLock { swap(&$0.body, &other) }
    }
  }

  private struct Handler {
    var body: (@Sendable (SchedulerViolation) -> Void)?
  }

  private static let handler = Locked(Handler())

  /// Traps if the current code does not run on this scheduler, even in release builds.
  ///
  /// The message names this scheduler and the one on which the code runs.
  ///
  /// `message` is the subject of the message, “This code” by default. It names what belongs to the scheduler.
  public func preconditionIsCurrent(
    _ message: @autoclosure () -> String = "",
    file: StaticString = #fileID,
    line: UInt = #line
  ) {
    if isCurrent { return }
    let (message, origin) = (message(), EventOrigin(file: file, line: line))
    reportViolation(message.isEmpty ? "This code" : message, origin, file: file, line: line)
  }

  func reportViolation(_ subject: String, _ origin: EventOrigin?, file: StaticString = #fileID, line: UInt = #line) {
    let current = Self.current?.name
    let violation = SchedulerViolation(subject: subject, scheduler: name, currentScheduler: current, origin: origin)
    guard let handler = Self.violationHandler else { misuse(violation.description, file: file, line: line) }
    handler(violation)
  }
}
