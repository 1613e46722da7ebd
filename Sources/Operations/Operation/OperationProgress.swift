import Foundation

/// The Progress of a group, or of an operation that reports its own units.
///
/// Foundation's can neither be observed on Linux nor be changed on two threads at once. This one tells its operation of
/// each change, and makes it under the lock that the package makes all such changes under. The group around the
/// operation has a copy of it among its children, which has none itself: so groups may be nested to any depth, and the
/// original stays free to be anybody's child, which it can be only once. A change goes outwards as far as a copy shows
/// it.
///
/// Cancelling it cancels the operation before `cancel()` returns. On Linux Foundation calls the handler later, on another
/// thread.
final class OperationProgress: Progress, @unchecked Sendable {
  private struct Owner {
    weak var operation: AsyncOperation?
  }

  private let owner: Locked<Owner>
  /// Guarded by the ``ProgressLock``.
  private var copies: [Progress] = []
  private var isOver = false

  init(of operation: AsyncOperation) {
    owner = Locked(Owner(operation: operation))
    super.init(parent: nil, userInfo: nil)
    isCancellable = true
    // For where a parent that is cancelled does not go through `cancel()`.
    cancellationHandler = { [weak operation] in operation?.cancel() }
  }

  private var operation: AsyncOperation? { owner.withLock { $0.operation } }

  override func cancel() {
    super.cancel()
    operation?.cancel()
  }

  override var totalUnitCount: Int64 {
    get { super.totalUnitCount }
    set {
      // Foundation on Linux divides by a total that goes back to zero. A negative one is as unknown, and divides; but
      // not all of them do: the least number there is overflows.
      change { super.totalUnitCount = newValue == 0 && super.totalUnitCount > 0 ? -1 : max(newValue, -1) }
    }
  }

  override var completedUnitCount: Int64 {
    get { super.completedUnitCount }
    set { change { super.completedUnitCount = max(newValue, -1) } }
  }

  private func change(_ body: () -> Void) {
    let isSeen = ProgressLock.exclusively {
      body()
      return updateCopies()
    }
    if isSeen { operation?.progressDidChange() }
  }

  /// Only within ``ProgressLock/exclusively(_:)``, and the copies are to be updated then.
  func advance(by change: ProgressChange) {
    if change.total != 0 { super.totalUnitCount += Int64(change.total) }
    if change.completed != 0 { super.completedUnitCount += Int64(change.completed) }
    if change.isOver { isOver = true }
  }

  /// A copy, which follows from now on.
  func makeCopy() -> Progress {
    ProgressLock.exclusively {
      let copy = Progress.discreteProgress(totalUnitCount: OperationProgress.unitsOfCopy)
      copies.append(copy)
      updateCopies()
      return copy
    }
  }

  /// The operation has finished: whatever it has reported, nothing is left to do.
  func end() {
    change {
      isOver = true
      if super.totalUnitCount <= 0 { super.totalUnitCount = 1 }
      if !isFinished { super.completedUnitCount = super.totalUnitCount }
    }
  }

  /// How many units a copy has: always as many, for on Linux the arithmetic of a parent is not made for children that
  /// change their total.
  private static let unitsOfCopy: Int64 = 1_000_000

  /// A child that has been complete once stays so for its parent, on Linux. So a copy is not before the operation is.
  ///
  /// - Returns: Whether there is one that has changed.
  @discardableResult
  func updateCopies() -> Bool {
    if copies.isEmpty { return false }
    let units = OperationProgress.unitsOfCopy
    let fraction = min(max(fractionCompleted, 0), 1)
    let completed = isOver ? units : min(Int64((fraction * Double(units)).rounded()), units - 1)
    var hasChanged = false
    for copy in copies where copy.completedUnitCount != completed {
      copy.completedUnitCount = completed
      hasChanged = true
    }
    return hasChanged
  }
}

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
