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
    /// The entries of each queue. Their arrays are replaced instead of changed in place, because ThreadSanitizer does not
    /// detect that readers have released the old one.
    private(set) var followers: [ObjectIdentifier: [Entry]] = [:]
    private var lastID = 0
    private var lookupsSinceSweep = 0

    mutating func add(_ follower: some QueueFollower, to queue: OperationQueue) {
      lastID += 1
      let id = ObjectIdentifier(queue)
      followers[id] = (followers[id] ?? []) + [Entry(id: lastID, queue: queue, follower: follower)]
    }

    mutating func remove(_ gone: Set<Int>, of queue: ObjectIdentifier) {
      let rest = followers[queue]?.filter { !gone.contains($0.id) }
      followers[queue] = rest?.isEmpty == true ? nil : rest
    }

    /// Returns the entries of a queue. After as many lookups as there are queues, returns the entries of all queues, so
    /// that those of released objects are found.
    mutating func lookUp(_ queue: ObjectIdentifier) -> [ObjectIdentifier: [Entry]] {
      lookupsSinceSweep += 1
      if lookupsSinceSweep < followers.count { return followers[queue].map { [queue: $0] } ?? [:] }
      lookupsSinceSweep = 0
      return Dictionary(uniqueKeysWithValues: followers.map { ($0, $1) })
    }
  }

  private static let entries = Locked(Entries())
  private static let isAnyQueueFollowed = Atomic(false)

  static func add(_ follower: some QueueFollower, to queue: OperationQueue) {
    if of(queue).contains(where: { $0 === follower }) { return }
    entries.withLock { entries in
      entries.add(follower, to: queue)
      isAnyQueueFollowed.store(true, ordering: .releasing)
    }
  }

  static func of(_ queue: OperationQueue) -> [any QueueFollower] {
    if !isAnyQueueFollowed.load(ordering: .acquiring) { return [] }
    // The weak references are loaded without the lock, because each loaded reference may be the last one.
    var followers: [any QueueFollower] = []
    for (id, entriesOfQueue) in entries.withLock({ $0.lookUp(ObjectIdentifier(queue)) }) {
      var gone: Set<Int> = []
      for entry in entriesOfQueue {
        guard let entryQueue = entry.queue, let follower = entry.follower else {
          gone.insert(entry.id)
          continue
        }
        if entryQueue === queue { followers.append(follower) }
      }
      if !gone.isEmpty { remove(gone, of: id) }
    }
    return followers
  }

  private static func remove(_ gone: Set<Int>, of queue: ObjectIdentifier) {
    entries.withLock { entries in
      entries.remove(gone, of: queue)
      isAnyQueueFollowed.store(!entries.followers.isEmpty, ordering: .releasing)
    }
  }
}
