extension Mailbox {
  /// The entries that run between two operations of the scheduler's queue.
  ///
  /// The mailbox itself stores the entries of the open segment. The mailbox's lock guards all access.
  final class Segment: @unchecked Sendable {
    /// The entries that no drain had taken out when the segment was sealed.
    var sealed: [Entry] = []
  }

  /// An event, a job or a marker that waits to run.
  struct Entry {
    enum Work {
      case event(@Sendable () -> Void)
      case ticket(EventTicket)
      /// Part of a task. It must run even after a shutdown, or its task would never resume.
      case job(UnownedJob)
      /// Runs when all earlier entries have run.
      case mark(@Sendable () -> Void)
      /// The entry has been taken out.
      case none
    }

    let work: Work
    /// The origin of an event, or nil for a job or a marker.
    let origin: EventOrigin?

    /// Whether the entry must run even if the scheduler discards its events.
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

  /// Entries that a drain has taken out of the mailbox, to run them without holding the lock.
  struct Batch {
    /// The largest capacity that is kept after a burst of events.
    private static let keptCapacity = 4096

    private var entries: [Entry] = []
    private var position = 0

    var isEmpty: Bool { position == entries.count }

    /// Removes and returns the next entry. The batch keeps no reference, so the entry is released as soon as it has
    /// run.
    mutating func next() -> Entry? {
      guard position < entries.count else { return nil }
      var entry = Entry(.none)
      swap(&entry, &entries[position])
      position += 1
      return entry
    }

    /// Removes the entries that have run and keeps their storage.
    mutating func clear() {
      entries.removeAll(keepingCapacity: entries.capacity <= Self.keptCapacity)
      position = 0
    }

    /// Takes the entries of `others`, and gives it the storage of this batch in return.
    mutating func exchange(with others: inout [Entry]) { swap(&entries, &others) }
  }
}
