import Foundation

/// Runs what has gathered in a segment of the mailbox.
///
/// It holds the scheduler, so that one with events lives until it has run them.
final class DrainOperation: Operation, @unchecked Sendable {
  private let scheduler: SerialScheduler
  private let segment: MailboxSegment

  init(_ scheduler: SerialScheduler, _ segment: MailboxSegment) {
    self.scheduler = scheduler
    self.segment = segment
    super.init()
  }

  override var name: String? {
    get { "events of \(scheduler.name)" }
    set {}
  }

  /// The queue may be told to cancel all its operations. What is in here has been accepted, and runs.
  override func cancel() {}

  override func main() { scheduler.drain(segment) }
}
