import Foundation

/// The reason why a node that waits for no other node has not finished.
struct StallReason {
  let cause: StallReport.Cause
  /// How unlikely the cause is to end by itself.
  let rank: Int
  /// The rest of a sentence that begins with the name of the operation.
  let predicate: String

  /// A task does not record since when it holds its keys.
  static let running = Self(cause: .executing, rank: 3, predicate: "is running")
  static let starting = Self(cause: .transitioning, rank: 1, predicate: "is about to start")
  static let ending = Self(cause: .transitioning, rank: 0, predicate: "is about to finish")

  /// The operation is in no known queue or group.
  private static func notEnqueued(_ operation: Operation) -> Self {
    let own = operation as? AsyncOperation
    // That is certain if Foundation has never checked its readiness.
    if let own, own.core.withLock({ $0.bridge.record == .unread && !$0.lifecycle.isCancelled }) {
      return Self(cause: .notEnqueued, rank: 9, predicate: "was never added to a queue or a group")
    }
    let guess =
      own == nil
      ? "is a plain Foundation operation in none of the searched queues: unless it was added to another one, it"
      : "was added to no queue or group by the package's methods: unless it was added by Foundation's, it"
    return Self(cause: .notEnqueued, rank: 6, predicate: guess + " never starts")
  }

  private static func notReady(_ operation: Operation) -> Self {
    // `isReady` is final in an `AsyncOperation`.
    let guess =
      operation is AsyncOperation
      ? "perhaps a barrier block is before it" : "its isReady is overridden, or a barrier block is before it"
    return Self(cause: .notReady, rank: 7, predicate: "is not ready, though all it depends on has finished: \(guess)")
  }

  /// The operation has not started, or is not ready inside its member.
  static func pending(_ operation: Operation, in place: WaitPlace?) -> Self {
    switch place {
    case .queue: notReady(operation)
    case .group: .starting
    case nil: (operation as? AsyncOperation)?.isFree ?? true ? notEnqueued(operation) : .starting
    }
  }

  static func executing(_ operation: Operation, for elapsed: Duration?) -> Self {
    if !operation.represented.isExecuting, !operation.represented.isReady { return notReady(operation.represented) }
    var predicate = "is executing (Foundation does not record since when)"
    if let elapsed {
      predicate = "has been executing for \(elapsed.reading), and has not finished"
      // Below 10 ms, the clock is too coarse.
      if elapsed < .milliseconds(10) { predicate = "has just begun to execute" }
      let mayHaveForgotten = (operation as? AsyncOperation)?.finishesByItself == false
      let remedy = ". If its work has ended, call `finish` on every path"
      if elapsed >= .seconds(1), mayHaveForgotten { predicate += remedy }
    }
    return Self(cause: .executing, rank: 3, predicate: (operation.isCancelled ? "was cancelled, but " : "") + predicate)
  }

  static func executing(_ group: GroupOperation) -> Self {
    if !group.engine.state.withLock({ $0.schedule.isOpen }) { return .ending }
    return group.isSuspended
      ? Self(cause: .suspended, rank: 8, predicate: "is suspended, and waits for members")
      : Self(cause: .executing, rank: 3, predicate: "stays open, and waits for members")
  }

  static func waiting(_ claimant: KeyClaimant?) -> Self {
    guard let restraint = claimant?.restraint else { return .starting }
    let endsByItself = if case .limit = restraint { false } else { true }
    return Self(
      cause: .exclusivity,
      rank: endsByItself ? 2 : 8,
      predicate: "waits for its turn under \(restraint.description)"
    )
  }

  static func waiting(forSlotOf place: WaitPlace) -> Self {
    let (isSuspended, limit, _) = place.slots
    if isSuspended {
      return Self(cause: .suspended, rank: 8, predicate: "cannot start because \(place.description) is suspended")
    }
    if limit == 0 {
      let reason = "maxConcurrentOperationCount of \(place.description) is 0"
      return Self(cause: .suspended, rank: 8, predicate: "cannot start because \(reason)")
    }
    let isMain = place.id == ObjectIdentifier(OperationQueue.main)
    let thread = isMain ? "the main thread gets to it" : "there is a thread for \(place.description)"
    return Self(cause: .transitioning, rank: 1, predicate: "is about to start, as soon as \(thread)")
  }
}

extension WaitSnapshot {
  /// The time that an operation has spent in its current phase, or nil if it has not started.
  func elapsed(_ node: Int) -> Duration? {
    guard let own = nodes[node].operation as? AsyncOperation, !nodes[node].stamp.phase.isPending else { return nil }
    return own.core.withLock { $0.since }?.elapsed
  }

  /// Returns the reason of a node that waits for no other node. It notifies Foundation of nothing, and grants no slot or key.
  func reason(of node: Int) -> StallReason {
    switch nodes[node].subject {
    case .operation(let operation, _): reason(of: node, operation)
    case .slots(let place): .waiting(forSlotOf: place)
    case .task(let keys as TaskKeys) where keys.isWaiting: .waiting(keys)
    case .task: .running
    // The key has been released meanwhile.
    case .key, .room, .oneOf: .starting
    }
  }

  private func reason(of node: Int, _ operation: Operation) -> StallReason {
    let own = operation as? AsyncOperation
    switch nodes[node].stamp.phase {
    case .pending(.keys), .suspended(.keys), .paused(.keys): return .waiting(own?.core.withLock { $0.keys })
    case .suspended(.conditions):
      guard let condition = own?.core.withLock({ $0.extras?.condition }) else { return .starting }
      let time = elapsed(node).map { ", for \($0.reading) so far" } ?? ""
      let predicate = "has not started because its condition “\(condition.inOneLine)” is being evaluated\(time)"
      return StallReason(cause: .condition, rank: 3, predicate: predicate)
    case .paused(.delay):
      guard let pause = own?.core.withLock({ $0.extras?.pause }) else { return .starting }
      let remaining = pause.remaining()
      let time = remaining > .zero ? "in \(remaining.reading)" : "now"
      return StallReason(cause: .backingOff, rank: 2, predicate: "waits for \(pause.next), which begins \(time)")
    case .pending: return .pending(operation, in: nodes[node].place)
    case .executing:
      if let group = operation as? GroupOperation { return .executing(group) }
      return .executing(operation, for: elapsed(node))
    case .suspended, .paused, .preparing: return .starting
    case .skipped, .ending, .finished: return .ending
    }
  }
}
