import Foundation

/// Updating Foundation's `Progress` when members finish or report.
extension GroupEngine {
  /// Returns the group's progress, which is up to date.
  func sharedProgress(of group: GroupOperation) -> OperationProgress {
    ProgressLock.exclusively {
      if let progress = state.withLock({ $0.progress.shared }) { return progress }
      let progress = follow(group)
      applyProgressChanges()
      return progress
    }
  }

  /// Returns the group's progress, and creates it if there is none. The next call to `applyProgressChanges()` applies
  /// past changes.
  private func follow(_ group: GroupOperation) -> OperationProgress {
    let new = OperationProgress(of: group)
    return state.withLock { $0.progress.follow(with: new) }
  }

  /// Applies all collected changes, including changes that another thread is about to apply. The progress is therefore
  /// complete when the thread that ends the group has called this method.
  ///
  /// Nested groups are updated in a loop, because recursion would limit their depth. Must be called within
  /// ``ProgressLock/exclusively(_:)``.
  private func applyProgressChanges() {
    var pending = [self]
    var inside: [OperationProgress] = []
    while let engine = pending.popLast() {
      guard let (progress, change) = engine.state.withLock({ $0.progress.takeChange() }) else { continue }
      progress.advance(by: change)
      if engine !== self { inside.append(progress) }
      for (operation, weight) in change.children {
        let child: OperationProgress
        if let group = operation as? GroupOperation {
          child = group.engine.follow(group)
          pending.append(group.engine)
        } else {
          child = operation.ownProgress
        }
        progress.addChild(child.makeCopy(), withPendingUnitCount: Int64(weight))
      }
    }
    // Inner groups come first, because each of them changes its enclosing group.
    for progress in inside.reversed() { progress.updateCopies() }
  }

  /// Applies the collected changes and publishes the group's progress, if it was requested.
  func updateProgress() {
    guard state.withLock({ $0.progress.isFollowed }) else { return }
    ProgressLock.exclusively { applyProgressChanges() }
    if publishProgress() { supervisedGroup?.progressDidChange() }
  }

  // MARK: Streams

  func updates(for group: GroupOperation) -> AsyncStream<Double> {
    let progress = sharedProgress(of: group)
    let (stream, listener) = AsyncStream.makeStream(of: Double.self, bufferingPolicy: .bufferingNewest(1))
    let number = ProgressLock.exclusively {
      listener.yield(progress.fractionCompleted)
      return state.withLock { $0.progress.add(listener) }
    }
    if let number {
      listener.onTermination = { [weak self] _ in
        let listener = self?.state.withLock { $0.progress.removeListener(number) }
        withExtendedLifetime(listener) {}
      }
      // Registers once, for all listeners, because a long-running group may have had many.
      if number == 1 { group.whenFinished { [weak self] in self?.endUpdates() } }
    } else {
      listener.yield(1)
      listener.finish()
    }
    return stream
  }

  private func endUpdates() {
    for listener in state.withLock({ $0.progress.endUpdates() }) {
      listener.yield(1)
      listener.finish()
    }
  }

  // MARK: Ending

  /// Ends the progress of the group and of its members, which may finish after the group.
  func endProgress() {
    var engines = [self]
    var next = 0
    while next < engines.count {
      for operation in engines[next].state.withLock({ $0.progress.end() }) {
        if let group = operation as? GroupOperation { engines.append(group.engine) } else { operation.endProgress() }
      }
      next += 1
    }
    // Inner groups come first, because a progress that has ended no longer changes.
    for engine in engines.reversed() { engine.updateProgress() }
  }
}
