extension AsyncOperation {
  /// How much the operation counts in the progress of its group: 1, unless it is set.
  ///
  /// A weight beyond a millionth of `Int.max`, which as a size in bytes is 8 TB, counts as that: so the sums of groups
  /// have room.
  ///
  /// - Precondition: The operation is in no group yet, and the weight is not negative.
  public final var progressWeight: Int {
    get { core.withLock { $0.extras?.progressWeight ?? 1 } }
    set {
      if newValue < 0 { misuse("\(quotedName) cannot count \(newValue) in a progress: give it a weight from 0 up.") }
      let isTooLate = core.withLock { core in
        if case .group = core.place { return true }
        core.makeExtras().progressWeight = min(newValue, Self.heaviest)
        return false
      }
      if isTooLate { misuse("\(quotedName) is in a group, which has taken its weight. Set it before.") }
    }
  }

  private static var heaviest: Int { .max >> 20 }

  /// Made when it is asked for, and told to the group around the operation.
  final var ownProgress: OperationProgress {
    if let progress = core.withLock({ $0.extras?.progress }) { return progress }
    let new = OperationProgress(of: self)
    let (progress, isFinished, supervisor, index) = core.withLock { core in
      let progress = core.extras?.progress ?? new
      core.makeExtras().progress = progress
      return (progress, core.isSettled, core.supervisor, core.memberIndex)
    }
    if isFinished { progress.end() }
    supervisor?.memberReportsProgress(self, index: index)
    return progress
  }

  /// Tells those who follow the progress of the groups around the operation.
  func progressDidChange() {
    var operation: AsyncOperation? = self
    while let supervisor = operation?.core.withLock({ $0.supervisor }), supervisor.publishProgress() {
      operation = supervisor.supervisedGroup
    }
  }
}
