import Foundation

/// The Progress of an operation that reports its own units.
///
/// Foundation's can neither be observed on Linux nor be changed on two threads at once. This one tells its operation of
/// each change, and makes it under the lock that the package makes all such changes under. The groups around the
/// operation have copies of it among their children: itself it stays free to be anybody's child, which it can be only
/// once.
final class OperationProgress: CancellingProgress, @unchecked Sendable {
  /// Guarded by the ``ProgressLock``.
  private var copies: [Progress] = []
  private var isOver = false

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
    ProgressLock.exclusively {
      body()
      for copy in copies { update(copy) }
    }
    operation?.progressDidChange()
  }

  /// A copy, which follows from now on.
  func makeCopy() -> Progress {
    ProgressLock.exclusively {
      let copy = Progress.discreteProgress(totalUnitCount: OperationProgress.unitsOfCopy)
      copies.append(copy)
      update(copy)
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
  private func update(_ copy: Progress) {
    let units = Double(OperationProgress.unitsOfCopy)
    let completed = Int64((min(max(fractionCompleted, 0), 1) * units).rounded())
    copy.completedUnitCount = isOver ? OperationProgress.unitsOfCopy : min(completed, OperationProgress.unitsOfCopy - 1)
  }
}
