/// What one drain operation runs: the events between two operations that were added to the scheduler's queue.
///
/// As long as events are added, they are in the mailbox itself; it is behind the mailbox's lock what follows.
final class MailboxSegment: @unchecked Sendable {
  /// What had come in and not been taken out when an operation was added behind it.
  var sealed: [MailboxEntry] = []
}
