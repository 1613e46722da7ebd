extension Mailbox {
  enum Entry {
    case event(@Sendable () -> Void, EventOrigin)
    case ticket(EventTicket)
    case job(UnownedJob)
    case mark(@Sendable () -> Void)
    case takenOut

    /// Whether the entry must run even if the scheduler discards its events. The task of a job would never resume.
    var mustRun: Bool {
      switch self {
      case .job, .mark: true
      case .event, .ticket, .takenOut: false
      }
    }
  }

  /// Entries that a drain has taken out of the mailbox, to run them without holding the lock.
  struct Batch {
    private var entries: [Entry] = []
    private var position = 0

    var isEmpty: Bool { position == entries.count }

    /// Removes and returns the next entry, without keeping a reference to it. The batch must not be empty.
    mutating func next() -> Entry {
      var entry = Entry.takenOut
      swap(&entry, &entries[position])
      position += 1
      return entry
    }

    mutating func clear() {
      // Returns the memory of a burst of events.
      entries.removeAll(keepingCapacity: entries.capacity <= 4096)
      position = 0
    }

    mutating func exchange(with others: inout [Entry]) { swap(&entries, &others) }
  }
}
