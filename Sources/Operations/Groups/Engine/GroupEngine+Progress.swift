import Foundation

/// How the members' ends, and what they report, become Foundation's Progress.
extension GroupEngine {
  func sharedProgress(of group: GroupOperation) -> OperationProgress {
    ProgressLock.exclusively {
      if let progress = state.withLock({ $0.progress.shared }) { return progress }
      let progress = follow(group)
      tellProgress()
      return progress
    }
  }

  /// The group's progress, made if there is none: it is told of the past later.
  private func follow(_ group: GroupOperation) -> OperationProgress {
    let new = OperationProgress(of: group)
    return state.withLock { $0.progress.follow(with: new) }
  }

  /// Carries out what has been collected by now: all of it, also what another thread is about to carry out. So whoever
  /// ends the group sees its progress complete.
  ///
  /// Groups inside have their progress made, and are brought up to date, one after another: they may be nested to any
  /// depth. Only within ``ProgressLock/exclusively(_:)``.
  private func tellProgress() {
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
    // Those further in first: each changes the one around it.
    for progress in inside.reversed() { progress.updateCopies() }
  }

  func updateProgress() {
    guard state.withLock({ $0.progress.isFollowed }) else { return }
    ProgressLock.exclusively { tellProgress() }
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
      // Once for all of them: most groups have none, and one that runs for long may have had many.
      if number == 1 { group.whenSettled { [weak self] in self?.endUpdates() } }
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

  // MARK: The end

  /// The group finishes, perhaps before its members have: then theirs is over, too.
  func endProgress() {
    var engines = [self]
    var next = 0
    while next < engines.count {
      for operation in engines[next].state.withLock({ $0.progress.end() }) {
        if let group = operation as? GroupOperation { engines.append(group.engine) } else { operation.endProgress() }
      }
      next += 1
    }
    // Those further in first: what is over does not change any more.
    for engine in engines.reversed() { engine.updateProgress() }
  }
}
