public import Foundation

extension AsyncOperation {
  /// Claims the operation for a queue. Traps if the operation is already in a queue or a group, or has been started.
  func claim(for queue: OperationQueue?) {
    switch take(for: queue) {
    case .claimed: return
    case .refused(let obstacle): misuse(cannotBeAdded(because: obstacle))
    case .repeated: misuse(cannotBeAdded(because: "is in a group"))
    }
  }

  /// Claims the operation for a queue, if it is free.
  ///
  /// - Returns: Whether the operation was claimed.
  func claimIfFree(for queue: OperationQueue? = nil) -> Bool {
    if case .claimed = take(for: queue) { return true }
    return false
  }

  private func take(for queue: OperationQueue?) -> OperationCore.ClaimAction {
    let (action, trace) = core.withLock { ($0.claim(for: queue), $0.trace) }
    guard case .claimed = action else { return action }
    let followers = queue.map { QueueFollowers.of($0) } ?? []
    for follower in followers { follower.queueDidClaim(self) }
    (followers.isEmpty ? trace : self.trace)?.send(.enqueued)
    return action
  }

  /// Whether the operation has not been started, and is in no queue or group that the package can detect.
  var isFree: Bool {
    core.withLock { core in
      if case .none = core.place { return core.lifecycle.phase == .pending }
      return false
    }
  }
}

extension Operation {
  func cannotBeAdded(because obstacle: String) -> String {
    "\(quotedName) \(obstacle) already and cannot be added. An operation runs once, in one place: make a new one."
  }
}

extension Operation {
  /// Sets the name and returns the operation: `let page = Download(url).named("page 3")`.
  ///
  /// Errors, reports and graphs use the name of an operation, or the name of its type if it has none.
  @discardableResult
  public func named(_ name: String) -> Self {
    self.name = name
    return self
  }
}
