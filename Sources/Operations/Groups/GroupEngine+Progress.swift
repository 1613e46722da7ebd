import Foundation

/// How the members' ends, and what they report, become Foundation's Progress.
extension GroupEngine {
  func sharedProgress(of group: GroupOperation) -> Progress {
    ProgressLock.exclusively {
      if let progress = state.withLock({ $0.progress.shared }) { return progress }
      return follow(CancellingProgress(of: group), isShared: true)
    }
  }

  func makeProgress() -> Progress { follow(Progress.discreteProgress(totalUnitCount: 0), isShared: false) }

  /// Keeps a progress up to date from now on.
  private func follow(_ progress: Progress, isShared: Bool) -> Progress {
    // Groups in groups have theirs made in here.
    Trampoline.run { [self] in
      ProgressLock.exclusively {
        tellProgresses()
        state.withLock { $0.progress.follow(progress, isShared: isShared) }.apply(to: [progress])
      }
    }
    return progress
  }

  /// Carries out what has been collected by now: all of it, also what another thread is about to carry out. So whoever
  /// ends the group sees its progress complete.
  private func tellProgresses() {
    let (change, progresses) = state.withLock { $0.progress.takeChange() }
    change.apply(to: progresses)
  }

  func updateProgress() {
    guard state.withLock({ $0.progress.isFollowed }) else { return }
    ProgressLock.exclusively { tellProgresses() }
    publishProgress()
    supervisedGroup?.progressDidChange()
  }

  // MARK: Streams

  /// A stream of `progress`, which is this group's shared one.
  func updates(of progress: Progress, for group: GroupOperation) -> AsyncStream<Double> {
    let (stream, listener) = AsyncStream.makeStream(of: Double.self, bufferingPolicy: .bufferingNewest(1))
    let number = ProgressLock.exclusively {
      listener.yield(progress.fractionCompleted)
      return state.withLock { $0.progress.add(listener) }
    }
    listener.onTermination = { [weak self] _ in _ = self?.removeListener(number) }
    group.whenSettled { [weak self] in
      guard let listener = self?.removeListener(number) else { return }
      listener.yield(1)
      listener.finish()
    }
    return stream
  }

  private func removeListener(_ number: Int) -> AsyncStream<Double>.Continuation? {
    state.withLock { $0.progress.removeListener(number) }
  }

  /// The group finishes, perhaps before its members have: then theirs is over, too.
  func endProgress() {
    let unfinished = state.withLock { $0.progress.end() }
    updateProgress()
    for operation in unfinished { Trampoline.run { operation.endProgress() } }
  }
}
