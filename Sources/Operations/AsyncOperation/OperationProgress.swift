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
