/// What one drain operation runs: the events between two operations that were added to the scheduler's queue.
final class MailboxSegment: @unchecked Sendable {
  /// Behind the mailbox's lock.
  var incoming: [MailboxEntry] = []
  /// About how many of them have been taken back.
  var goneCount = 0

  /// The drain's own.
  private var batch: [MailboxEntry] = []
  private var position = 0

  /// More than this is given back when it has been run: a storm may have needed much.
  private static let keptCapacity = 4096

  /// The next entry of those that have been taken out, moved out of there so that it goes when it has been run.
  func next() -> MailboxEntry? {
    guard position < batch.count else { return nil }
    var entry = MailboxEntry(.none)
    swap(&entry, &batch[position])
    position += 1
    return entry
  }

  var hasNext: Bool { position < batch.count }

  /// Takes out all that has come in. Under the mailbox's lock.
  func refill() {
    swap(&incoming, &batch)
    position = 0
    goneCount = 0
  }

  /// To be called when everything has been run, before ``refill()``.
  func clear() {
    batch.removeAll(keepingCapacity: batch.capacity <= Self.keptCapacity)
    position = 0
  }
}
