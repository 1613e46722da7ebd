import Foundation
import Synchronization

/// The tracers of all queues, because an `OperationQueue` cannot store them. The references are weak. While no queue
/// is followed, a lookup only loads a flag.
struct QueueFollowers {
  private struct Entry {
    let id: Int
    weak var queue: OperationQueue?
    weak var follower: OperationTracer?
  }

  /// The entries of each queue. Their arrays are replaced instead of changed in place, because ThreadSanitizer does not
  /// detect that readers have released the old one.
  private var entries: [ObjectIdentifier: [Entry]] = [:]
  private var lastID = 0
  private var lookupsSinceSweep = 0

  /// Returns the entries of a queue. After as many lookups as there are queues, returns the entries of all queues, so
  /// that those of released objects are found.
  private mutating func lookUp(_ queue: ObjectIdentifier) -> [ObjectIdentifier: [Entry]] {
    lookupsSinceSweep += 1
    if lookupsSinceSweep < entries.count { return entries[queue].map { [queue: $0] } ?? [:] }
    lookupsSinceSweep = 0
    return Dictionary(uniqueKeysWithValues: entries.map { ($0, $1) })
  }

  private static let all = Locked(QueueFollowers())
  private static let isAnyQueueFollowed = Atomic(false)

  static func add(_ follower: OperationTracer, to queue: OperationQueue) {
    if of(queue).contains(where: { $0 === follower }) { return }
    all.withLock { all in
      all.lastID += 1
      let id = ObjectIdentifier(queue)
      all.entries[id] = (all.entries[id] ?? []) + [Entry(id: all.lastID, queue: queue, follower: follower)]
      isAnyQueueFollowed.store(true, ordering: .releasing)
    }
  }

  static func of(_ queue: OperationQueue) -> [OperationTracer] {
    if !isAnyQueueFollowed.load(ordering: .acquiring) { return [] }
    // The weak references are loaded without the lock, because each loaded reference may be the last one.
    var followers: [OperationTracer] = []
    for (id, entriesOfQueue) in all.withLock({ $0.lookUp(ObjectIdentifier(queue)) }) {
      var gone: Set<Int> = []
      for entry in entriesOfQueue {
        guard let entryQueue = entry.queue, let follower = entry.follower else {
          gone.insert(entry.id)
          continue
        }
        if entryQueue === queue { followers.append(follower) }
      }
      if gone.isEmpty { continue }
      all.withLock { all in
        let rest = all.entries[id]?.filter { !gone.contains($0.id) }
        all.entries[id] = rest?.isEmpty == true ? nil : rest
        isAnyQueueFollowed.store(!all.entries.isEmpty, ordering: .releasing)
      }
    }
    return followers
  }
}
