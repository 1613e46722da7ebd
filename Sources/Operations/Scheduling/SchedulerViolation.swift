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
