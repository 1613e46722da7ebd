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
