public import Foundation
import Synchronization

extension OperationQueue {
  /// Adds an observer to every operation that the package's methods add to the queue from now on.
  ///
  /// ```swift
  /// queue.addObserver(OperationObserver(didFinish: { if let error = $0.errors.first { log(error, from: $0) } }))
  /// ```
  ///
  /// These methods are `addOperation` and `addOperations` for an ``AsyncOperation``, `addGraph`, `addTask`, `run`,
  /// `results`, `first` and `withSlot`. Members of groups are observed by ``GroupOperation/addObserver(toMembers:)``. The
  /// observer is released some time after the queue.
  public func addObserver(_ observer: OperationObserver) {
    QueueFollowers.add(self, to: self) { $0.addObserver(observer) }
  }
}

/// The observers and tracers of all queues, because an `OperationQueue` cannot store them. Those of a queue or an owner that
/// has been released are removed. While no queue is followed, a lookup only loads a flag.
struct QueueFollowers {
  typealias Follower = @Sendable (AsyncOperation) -> Void

  private struct Entry {
    let id: Int
    weak var queue: OperationQueue?
    weak var owner: AnyObject?
    let follower: Follower
  }

  /// Arrays are replaced in whole, because ThreadSanitizer does not detect that readers have released the old ones.
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

  static func add(_ owner: AnyObject, to queue: OperationQueue, _ follower: @escaping Follower) {
    all.withLock { all in
      all.lastID += 1
      let id = ObjectIdentifier(queue)
      all.entries[id, default: []] += [Entry(id: all.lastID, queue: queue, owner: owner, follower: follower)]
      isAnyQueueFollowed.store(true, ordering: .releasing)
    }
  }

  static func of(_ queue: OperationQueue) -> [Follower] {
    if !isAnyQueueFollowed.load(ordering: .acquiring) { return [] }
    // The weak references are loaded without the lock, because each loaded reference may be the last one.
    var followers: [Follower] = []
    for (id, entriesOfQueue) in all.withLock({ $0.lookUp(ObjectIdentifier(queue)) }) {
      var gone: Set<Int> = []
      for entry in entriesOfQueue {
        guard let entryQueue = entry.queue, entry.owner != nil else {
          gone.insert(entry.id)
          continue
        }
        if entryQueue === queue { followers.append(entry.follower) }
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
