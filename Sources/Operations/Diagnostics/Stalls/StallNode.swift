import Foundation

struct StallNode {
  enum Subject {
    case operation(Operation)
    /// The start of an operation that has members. The previous case is then its end.
    case start(of: Operation)
    case slots(of: StallPlace)
    case key(KeyRegistry.Table.Obstacle)
  }

  typealias Wait = WaitSnapshot.Wait

  /// The reason why a node that waits for no other node has not finished.
  enum Reason {
    /// The operation is in no known queue or group. That is certain if Foundation has never checked its readiness.
    case notEnqueued(isCertain: Bool)
    case suspended(StallPlace)
    case hasNoSlots(StallPlace)
    case waitsForMembers(isSuspended: Bool)
    case notReady
    case condition(String)
    case executing
    case backingOff(before: String, remaining: Duration)
    case throttled(ExclusivityKey)
    case starting(StallPlace?)
    case ending
  }

  let subject: Subject
  var waits: [Wait] = []
  /// The number of waits that must end, or nil if all of them must.
  var needed: Int?
  var reason: Reason?
  var place: StallPlace?
  /// The time that the operation has spent in its current phase, or nil if it has not started.
  var elapsed: Duration?
  var stamp = WaitSnapshot.Stamp()

  var operation: Operation? {
    switch subject {
    case .operation(let operation), .start(let operation): operation
    case .slots, .key: nil
    }
  }
}

extension StallNode {
  /// The execution time after which the report suggests a missing call of `finish()`.
  private static let longExecution = Duration.seconds(1)
  /// Below this time, the clock is too coarse.
  private static let shortExecution = Duration.milliseconds(10)

  var ownPredicate: String {
    let own = operation as? AsyncOperation
    let isPlain = operation != nil && own == nil
    switch reason ?? .ending {
    case .notEnqueued(isCertain: true): return "was never added to a queue or a group"
    case .notEnqueued where isPlain:
      return
        "is a plain Foundation operation in none of the searched queues: unless it was added to "
        + "another one, it never starts"
    case .notEnqueued:
      return
        "was added to no queue or group by the package's methods: unless it was added by Foundation's, it never "
        + "starts"
    case .suspended(let place): return "cannot start because \(place.description) is suspended"
    case .hasNoSlots(let place): return "cannot start because maxConcurrentOperationCount of \(place.description) is 0"
    case .waitsForMembers(let isSuspended):
      return "\(isSuspended ? "is suspended" : "stays open"), and waits for members"
    case .notReady where isPlain:
      return
        "is not ready, though all it depends on has finished: its isReady is overridden, or a barrier block is before it"
    case .notReady: return "is not ready, though all it depends on has finished: perhaps a barrier block is before it"
    case .condition(let name):
      return "has not started because its condition “\(name.inOneLine)” is being evaluated"
        + (elapsed.map { ", for \($0.reading) so far" } ?? "")
    case .executing: return (stamp.isCancelled ? "was cancelled, but " : "") + executing(own)
    case .throttled(let key): return "waits for its turn under the throttled key \(key.quoted)"
    case .backingOff(let next, let remaining):
      return "waits for \(next), which begins \(remaining > .zero ? "in \(remaining.reading)" : "now")"
    case .starting(.queue(.main)?): return "is about to start, as soon as the main thread gets to it"
    case .starting(let place?): return "is about to start, as soon as there is a thread for \(place.description)"
    case .starting(nil): return "is about to start"
    case .ending: return "is about to finish"
    }
  }

  private func executing(_ own: AsyncOperation?) -> String {
    guard let elapsed else { return "is executing (Foundation does not record since when)" }
    if elapsed < Self.shortExecution { return "has just begun to execute" }
    let mayHaveForgotten = elapsed >= Self.longExecution && own?.finishesByItself == false
    let guess = mayHaveForgotten ? ": perhaps it never calls finish()" : ""
    return "has been executing for \(elapsed.reading), and has not finished" + guess
  }
}

/// The queue or the group that provides the slots of an operation.
enum StallPlace {
  case queue(OperationQueue)
  case group(GroupOperation)

  var id: ObjectIdentifier {
    switch self {
    case .queue(let queue): ObjectIdentifier(queue)
    case .group(let group): ObjectIdentifier(group)
    }
  }

  var name: String? {
    switch self {
    case .group(let group): group.displayName
    case .queue(.main): "main"
    // Foundation's default name for a queue contains only its class and address.
    case .queue(let queue): queue.name.flatMap { $0.isEmpty || $0.hasPrefix("NSOperationQueue 0x") ? nil : $0 }
    }
  }

  var description: String {
    switch self {
    case .group(let group): "the group \(group.shownName)"
    case .queue(.main): "the main queue"
    case .queue: name.map { "the queue “\($0.inOneLine)”" } ?? "its queue"
    }
  }

  var isSuspended: Bool {
    switch self {
    case .queue(let queue): queue.isSuspended
    case .group(let group): group.isSuspended && !group.isDraining
    }
  }

  /// The number of operations that can execute at once, or nil if there is no limit.
  var limit: Int? {
    switch self {
    case .queue(let queue): queue.maxConcurrentOperationCount < 0 ? nil : queue.maxConcurrentOperationCount
    case .group(let group):
      group.maxConcurrentOperationCount < 0 || group.isDraining ? nil : group.maxConcurrentOperationCount
    }
  }

  /// The operations that use a slot. Foundation does not expose those that a queue has taken but not started.
  var executing: [Operation] {
    let operations =
      switch self {
      case .queue(let queue): queue.operations
      case .group(let group): group.operations
      }
    return operations.filter { operation in
      if operation.isFinished { return false }
      guard let own = operation as? AsyncOperation else { return operation.isExecuting }
      return own.core.withLock { $0.lifecycle.phase != .pending && $0.holdsSlot }
    }
  }
}
