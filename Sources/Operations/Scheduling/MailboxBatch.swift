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
