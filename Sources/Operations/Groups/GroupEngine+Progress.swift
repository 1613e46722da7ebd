import Foundation

/// How the members' ends become Foundation's Progress.
extension GroupEngine {
  func sharedProgress(onCancel: @escaping @Sendable () -> Void) -> Progress {
    ProgressChange.exclusively {
      if let progress = state.withLock({ $0.progress.shared }) { return progress }
      let progress = makeProgress(isShared: true)
      progress.isCancellable = true
      progress.cancellationHandler = onCancel
      return progress
    }
  }

  func makeProgress(isShared: Bool = false) -> Progress {
    ProgressChange.exclusively {
      let progress = Progress.discreteProgress(totalUnitCount: 0)
      state.withLock { $0.progress.follow(progress, isShared: isShared) }.apply()
      return progress
    }
  }
}
