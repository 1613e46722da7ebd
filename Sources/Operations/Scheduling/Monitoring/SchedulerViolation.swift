/// Something that belongs to a scheduler was touched outside of it.
public struct SchedulerViolation: Sendable, CustomStringConvertible {
  /// What was touched: a property and its type, the type of a scheduled object, or what the check said.
  public let subject: String
  /// The name of the scheduler it belongs to.
  public let scheduler: String
  /// The name of the scheduler it was touched on; nil if that was none.
  public let touchedOn: String?
  /// Where the check is, or the property's declaration. A scheduled object's is not known.
  public let origin: EventOrigin?

  init(_ subject: String, of scheduler: SerialScheduler, _ origin: EventOrigin?) {
    self.subject = subject
    self.scheduler = scheduler.name
    touchedOn = SerialScheduler.current?.name
    self.origin = origin
  }

  public var description: String {
    "\(subject) belongs to the scheduler “\(scheduler)” and was touched \(Self.place(touchedOn)). Schedule an event on "
      + "“\(scheduler)” that does it."
  }

  static func place(_ scheduler: String?) -> String {
    scheduler.map { "on the scheduler “\($0)”" } ?? "on a thread that is on no scheduler"
  }
}

extension SerialScheduler {
  /// Who is told when something is touched outside of its scheduler, instead of ending the program. It goes on then, at
  /// its own risk.
  ///
  /// For all schedulers, for a program that is being brought to follow the rules: it records what it has not got right
  /// yet. The compiler's own checks, such as `assumeIsolated`, end the program nevertheless.
  public static var violationHandler: (@Sendable (SchedulerViolation) -> Void)? {
    get { handler.withLock { $0 } }
    set {
      // The one before goes when the lock has been released: its closure is not ours.
      _ = handler.withLock { handler in
        defer { handler = newValue }
        return handler
      }
    }
  }

  private static let handler = Locked<(@Sendable (SchedulerViolation) -> Void)?>(nil)

  /// Ends the program if the code does not run on this scheduler, in release builds, too, with a sentence that names
  /// both.
  ///
  /// - Parameters:
  ///   - message: What must not be done elsewhere: the beginning of the sentence.
  ///   - file: Where the check is.
  ///   - line: Where the check is.
  public func preconditionIsCurrent(
    _ message: @autoclosure () -> String = "",
    file: StaticString = #fileID,
    line: UInt = #line
  ) {
    if isCurrent { return }
    let message = message()
    report(
      SchedulerViolation(
        message.isEmpty ? "What is done here" : message,
        of: self,
        EventOrigin(file: file, line: line)
      ),
      file: file,
      line: line
    )
  }

  func report(_ violation: SchedulerViolation, file: StaticString = #fileID, line: UInt = #line) {
    guard let handler = Self.violationHandler else { misuse(violation.description, file: file, line: line) }
    handler(violation)
  }
}
