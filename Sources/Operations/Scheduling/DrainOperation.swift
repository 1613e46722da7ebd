import Foundation

/// Runs what has gathered in a segment of the mailbox.
///
/// It holds the scheduler, so that one with events lives until it has run them.
final class DrainOperation: Operation, @unchecked Sendable {
  private let scheduler: SerialScheduler
  private let segment: MailboxSegment
  private var batch: MailboxBatch

  init(_ scheduler: SerialScheduler, _ segment: MailboxSegment, _ batch: MailboxBatch) {
    self.scheduler = scheduler
    self.segment = segment
    self.batch = batch
    super.init()
  }

  override var name: String? {
    get { "events of \(scheduler.name)" }
    set {}
  }

  /// The queue may be told to cancel all its operations. What is in here has been accepted, and runs.
  override func cancel() {}

  override func main() { scheduler.drain(segment, takeBatch()) }

  /// Moved out: a second reference would keep alive what has been run.
  private func takeBatch() -> MailboxBatch {
    var taken = MailboxBatch()
    swap(&taken, &batch)
    return taken
  }
}
