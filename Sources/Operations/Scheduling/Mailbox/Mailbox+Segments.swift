/// What waits in a mailbox to be run.
struct MailboxEntry {
  enum Work {
    case event(@Sendable () -> Void)
    case ticket(EventTicket)
    /// A piece of a task, which must run whatever happens to the scheduler, or its task would wait for ever.
    case job(UnownedJob)
    /// Somebody who wants to know that everything before has been run.
    case mark(@Sendable () -> Void)
    /// It has been run.
    case none
  }

  let work: Work
  /// Nil for a job.
  let origin: EventOrigin?

  /// Also if the scheduler has been shut down.
  var mustRun: Bool {
    switch work {
    case .job, .mark: true
    case .event, .ticket, .none: false
    }
  }

  init(_ work: Work, _ origin: EventOrigin? = nil) {
    self.work = work
    self.origin = origin
  }
}

/// What one drain operation runs: the events between two operations that were added to the scheduler's queue.
///
/// As long as events are added, they are in the mailbox itself; it is behind the mailbox's lock what follows.
final class MailboxSegment: @unchecked Sendable {
  /// What had come in and not been taken out when an operation was added behind it.
  var sealed: [MailboxEntry] = []
}

/// Entries that have been taken out of the mailbox, to be run one after the other without its lock.
struct MailboxBatch {
  /// More than this is given back when it has been run: a storm may have needed much.
  private static let keptCapacity = 4096

  private var entries: [MailboxEntry] = []
  private var position = 0

  var isEmpty: Bool { position == entries.count }

  /// The next entry, moved out so that it goes when it has been run.
  mutating func next() -> MailboxEntry? {
    guard position < entries.count else { return nil }
    var entry = MailboxEntry(.none)
    swap(&entry, &entries[position])
    position += 1
    return entry
  }

  /// Makes room to take others in. What is in here has been run.
  mutating func clear() {
    entries.removeAll(keepingCapacity: entries.capacity <= Self.keptCapacity)
    position = 0
  }

  /// Takes what is in `others`, which get the room of this one.
  mutating func exchange(with others: inout [MailboxEntry]) { swap(&entries, &others) }
}
