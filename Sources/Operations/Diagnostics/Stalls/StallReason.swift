import Foundation

/// The reason why a node that waits for no other node has not finished.
struct StallReason {
  let cause: StallReport.Cause
  /// How unlikely the cause is to end by itself.
  let rank: Int
  /// The rest of a sentence that begins with the name of the operation.
  let predicate: String

  private init(_ cause: StallReport.Cause, rank: Int, _ predicate: String) {
    (self.cause, self.rank, self.predicate) = (cause, rank, predicate)
  }

  /// The operation is in no known queue or group. That is certain if Foundation has never checked its readiness.
  static func notEnqueued(_ operation: Operation, isCertain: Bool) -> Self {
    if isCertain { return Self(.notEnqueued, rank: 9, "was never added to a queue or a group") }
    let guess =
      operation is AsyncOperation
      ? "was added to no queue or group by the package's methods: unless it was added by Foundation's, it"
      : "is a plain Foundation operation in none of the searched queues: unless it was added to another one, it"
    return Self(.notEnqueued, rank: 6, guess + " never starts")
  }

  static func suspended(_ place: WaitPlace) -> Self {
    Self(.suspended, rank: 8, "cannot start because \(place.description) is suspended")
  }

  static func hasNoSlots(_ place: WaitPlace) -> Self {
    Self(.suspended, rank: 8, "cannot start because maxConcurrentOperationCount of \(place.description) is 0")
  }

  static func waitsForMembers(isSuspended: Bool) -> Self {
    isSuspended
      ? Self(.suspended, rank: 8, "is suspended, and waits for members")
      : Self(.executing, rank: 3, "stays open, and waits for members")
  }

  static func notReady(_ operation: Operation) -> Self {
    // `isReady` is final in an `AsyncOperation`.
    let guess =
      operation is AsyncOperation
      ? "perhaps a barrier block is before it" : "its isReady is overridden, or a barrier block is before it"
    return Self(.notReady, rank: 7, "is not ready, though all it depends on has finished: \(guess)")
  }

  static func condition(_ name: String, for elapsed: Duration?) -> Self {
    let time = elapsed.map { ", for \($0.reading) so far" } ?? ""
    let predicate = "has not started because its condition “\(name.inOneLine)” is being evaluated"
    return Self(.condition, rank: 3, predicate + time)
  }

  static func executing(_ operation: Operation, for elapsed: Duration?, isCancelled: Bool) -> Self {
    var predicate = "is executing (Foundation does not record since when)"
    if let elapsed {
      predicate = "has been executing for \(elapsed.reading), and has not finished"
      // Below 10 ms, the clock is too coarse.
      if elapsed < .milliseconds(10) { predicate = "has just begun to execute" }
      let mayHaveForgotten = (operation as? AsyncOperation)?.finishesByItself == false
      let remedy = ". If its work has ended, call `finish` on every path"
      if elapsed >= .seconds(1), mayHaveForgotten { predicate += remedy }
    }
    return Self(.executing, rank: 3, (isCancelled ? "was cancelled, but " : "") + predicate)
  }

  static func backingOff(before next: String, remaining: Duration) -> Self {
    let time = remaining > .zero ? "in \(remaining.reading)" : "now"
    return Self(.backingOff, rank: 2, "waits for \(next), which begins \(time)")
  }

  static func restrained(by restraint: KeyRestraint) -> Self {
    let endsByItself = if case .limit = restraint { false } else { true }
    return Self(.exclusivity, rank: endsByItself ? 2 : 8, "waits for its turn under \(restraint.description)")
  }

  static func starting(in place: WaitPlace) -> Self {
    let isMain = place.id == ObjectIdentifier(OperationQueue.main)
    let thread = isMain ? "the main thread gets to it" : "there is a thread for \(place.description)"
    return Self(.transitioning, rank: 1, "is about to start, as soon as \(thread)")
  }

  /// A task does not record since when it holds its keys.
  static let running = Self(.executing, rank: 3, "is running")
  static let starting = Self(.transitioning, rank: 1, "is about to start")
  static let ending = Self(.transitioning, rank: 0, "is about to finish")
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
    case .slots(let place): reason(of: place)
    case .task(let keys as TaskKeys) where keys.isWaiting: keys.restraint.map { .restrained(by: $0) } ?? .starting
    case .task: .running
    // The key has been released meanwhile.
    case .key, .room, .oneOf: .starting
    }
  }

  private func reason(of place: WaitPlace) -> StallReason {
    let (isSuspended, limit, _) = place.slots
    return isSuspended ? .suspended(place) : limit == 0 ? .hasNoSlots(place) : .starting(in: place)
  }

  private func reason(of node: Int, _ operation: Operation) -> StallReason {
    let stamp = nodes[node].stamp
    guard let own = operation as? AsyncOperation else {
      switch stamp.phase {
      case .pending: return nodes[node].place == nil ? .notEnqueued(operation, isCertain: false) : .notReady(operation)
      case .executing: return .executing(operation, for: nil, isCancelled: stamp.isCancelled)
      case .suspended, .preparing, .paused, .skipped, .ending, .finished: return .ending
      }
    }
    let (pause, condition, keys) = own.core.withLock { ($0.extras?.pause, $0.extras?.condition, $0.keys) }
    switch stamp.phase {
    case .pending(.keys), .suspended(.keys), .paused(.keys):
      return keys?.restraint.map { .restrained(by: $0) } ?? .starting
    case .suspended(.conditions): return condition.map { .condition($0, for: elapsed(node)) } ?? .starting
    case .paused(.delay): return pause.map { .backingOff(before: $0.next, remaining: $0.remaining()) } ?? .starting
    case .pending:
      if let place = nodes[node].place { return if case .queue = place { .notReady(operation) } else { .starting } }
      if !own.isFree { return .starting }
      let isCertain = own.core.withLock { $0.bridge.record == .unread && !$0.lifecycle.isCancelled }
      return .notEnqueued(operation, isCertain: isCertain)
    case .executing:
      if let group = own as? GroupOperation {
        let isOpen = group.engine.state.withLock { $0.schedule.isOpen }
        return isOpen ? .waitsForMembers(isSuspended: group.isSuspended) : .ending
      }
      if !own.represented.isExecuting, !own.represented.isReady { return .notReady(own.represented) }
      return .executing(own, for: elapsed(node), isCancelled: stamp.isCancelled)
    case .suspended, .paused, .preparing: return .starting
    case .skipped, .ending, .finished: return .ending
    }
  }
}
