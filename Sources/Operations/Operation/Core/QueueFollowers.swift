import Foundation
import Synchronization

/// An object that is notified of the operations added to a queue.
///
/// A tracer conforms to it, so that the lower layers do not depend on the tracer.
protocol QueueFollower: AnyObject, Sendable {
  /// Responds to an operation that the queue has claimed and does not run yet.
  func queueDidClaim(_ operation: AsyncOperation)
}

/// The followers of all queues, because an `OperationQueue` cannot store them.
///
/// The references are weak. While no queue is followed, a lookup only loads a flag.
enum QueueFollowers {
  private struct Entry {
    let id: Int
    weak var queue: OperationQueue?
    weak var follower: (any QueueFollower)?
  }

  private struct Entries {
    var all: [Entry] = []
    var lastID = 0
  }

  private static let entries = Locked(Entries())
  private static let isAnyQueueFollowed = Atomic(false)

  static func add(_ follower: some QueueFollower, to queue: OperationQueue) {
    if of(queue).contains(where: { $0 === follower }) { return }
    entries.withLock { entries in
      entries.lastID += 1
      // A new array instead of a change in place, because ThreadSanitizer does not detect that readers have released
      // the old one.
      entries.all = entries.all + [Entry(id: entries.lastID, queue: queue, follower: follower)]
      isAnyQueueFollowed.store(true, ordering: .releasing)
    }
  }

  static func of(_ queue: OperationQueue) -> [any QueueFollower] {
    if !isAnyQueueFollowed.load(ordering: .acquiring) { return [] }
    // The weak references are loaded without the lock, because each loaded reference may be the last one.
    var gone: Set<Int> = []
    var followers: [any QueueFollower] = []
    for entry in entries.withLock({ $0.all }) {
      guard let entryQueue = entry.queue, let follower = entry.follower else {
        gone.insert(entry.id)
        continue
      }
      if entryQueue === queue { followers.append(follower) }
    }
    if !gone.isEmpty { remove(gone) }
    return followers
  }

  private static func remove(_ gone: Set<Int>) {
    entries.withLock { entries in
      entries.all = entries.all.filter { !gone.contains($0.id) }
      isAnyQueueFollowed.store(!entries.all.isEmpty, ordering: .releasing)
    }
  }
}
