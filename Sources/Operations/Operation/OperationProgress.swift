import Foundation

/// The `Progress` of a group, or of an operation that reports its own units. On Linux, Foundation's `Progress` can
/// neither be observed nor be changed on two threads at once, so this class notifies its operation of each change.
///
/// A progress can have only one parent. The enclosing group's progress therefore has a copy of this one as a child. The
/// copy has no children, so groups can be nested to any depth. Cancelling the progress cancels the operation before
/// `cancel()` returns. On Linux, Foundation calls the cancellation handler later, on another thread.
final class OperationProgress: Progress, @unchecked Sendable {
  /// The operation. Never changed, so that it needs no lock.
  private weak var operation: AsyncOperation?
  private var copies: [Progress] = []
  /// The least completed units of a copy: all of them when the operation is over.
  private var leastUnits: Int64 = 0

  /// The one lock for all changes that the package makes to Foundation's Progress, which has no lock on Linux, and whose
  /// children change their parents. Recursive, because Apple's platforms call observers while it is held.
  private static let lock = NSRecursiveLock()

  static func exclusively<Result>(_ body: () -> Result) -> Result { lock.withLock(body) }

  init(of operation: AsyncOperation) {
    self.operation = operation
    super.init(parent: nil, userInfo: nil)
    isCancellable = true
    // Needed where cancelling a parent does not call `cancel()`.
    cancellationHandler = { [weak operation] in operation?.cancel() }
  }

  override func cancel() {
    super.cancel()
    operation?.cancel()
  }

  override var totalUnitCount: Int64 {
    get { super.totalUnitCount }
    set {
      // On Linux, Foundation divides by a total that returns to zero. A total of -1 also stands for an unknown total,
      // and is a valid divisor. Lower totals are raised to -1, because the least integer overflows.
      change { super.totalUnitCount = newValue == 0 && super.totalUnitCount > 0 ? -1 : max(newValue, -1) }
    }
  }

  override var completedUnitCount: Int64 {
    get { super.completedUnitCount }
    set { change { super.completedUnitCount = max(newValue, -1) } }
  }

  private func change(_ body: () -> Void) {
    let isSeen = Self.exclusively {
      body()
      return updateCopies()
    }
    if isSeen { operation?.progressDidChange() }
  }

  /// Must be called within ``exclusively(_:)``, and the caller must then update the copies.
  func advance(completed: Int, total: Int, isOver: Bool) {
    if total != 0 { super.totalUnitCount += Int64(total) }
    if completed != 0 { super.completedUnitCount += Int64(completed) }
    if isOver { leastUnits = OperationProgress.unitsOfCopy }
  }

  func makeCopy() -> Progress {
    Self.exclusively {
      let copy = Progress.discreteProgress(totalUnitCount: OperationProgress.unitsOfCopy)
      copies.append(copy)
      updateCopies()
      return copy
    }
  }

  /// Completes the progress, whatever its unit counts, because the operation has finished.
  func end() {
    change {
      leastUnits = OperationProgress.unitsOfCopy
      if super.totalUnitCount <= 0 { super.totalUnitCount = 1 }
      if !isFinished { super.completedUnitCount = super.totalUnitCount }
    }
  }

  /// Constant, because on Linux the arithmetic of a parent does not support children that change their total.
  private static let unitsOfCopy: Int64 = 1_000_000

  /// Returns whether a copy has changed. On Linux, a child that was complete once remains complete for its parent. A
  /// copy is therefore not complete before the operation is.
  @discardableResult
  func updateCopies() -> Bool {
    if copies.isEmpty { return false }
    let units = OperationProgress.unitsOfCopy
    let fraction = min(max(fractionCompleted, 0), 1)
    let completed = max(leastUnits, min(Int64((fraction * Double(units)).rounded()), units - 1))
    let outdated = copies.filter { $0.completedUnitCount != completed }
    for copy in outdated { copy.completedUnitCount = completed }
    return !outdated.isEmpty
  }
}

extension AsyncOperation {
  /// The weight of the operation in the progress of its group. The default is 1.
  ///
  /// The largest weight is a millionth of `Int.max`, or 8 TB as a size in bytes. A larger weight counts as the largest,
  /// so that the sums of groups do not overflow.
  ///
  /// - Precondition: The operation is not in a group yet, and the weight is not negative.
  public final var progressWeight: Int {
    get { core.withLock { $0.extras?.progressWeight ?? 1 } }
    set {
      if newValue < 0 { misuse("\(quotedName) cannot count \(newValue) in a progress: give it a weight from 0 up.") }
      let isTooLate = core.withLock { core in
        if case .group = core.place { return true }
        core.makeExtras().progressWeight = min(newValue, .max >> 20)
        return false
      }
      if isTooLate { misuse("\(quotedName) is in a group, which has taken its weight. Set it before.") }
    }
  }

  /// The first read creates the progress and notifies the group around the operation.
  final var ownProgress: OperationProgress {
    if let progress = core.withLock({ $0.extras?.progress }) { return progress }
    let new = OperationProgress(of: self)
    let (progress, isFinished) = core.withLock { core in
      let progress = core.extras?.progress ?? new
      core.makeExtras().progress = progress
      return (progress, core.isClosed)
    }
    if isFinished { progress.end() }
    let (engine, index) = core.withLock { ($0.engine, $0.memberIndex) }
    engine?.memberReportsProgress(self, index: index)
    return progress
  }

  func progressDidChange() {
    var operation: AsyncOperation? = self
    while let engine = operation?.core.withLock({ $0.engine }), engine.publishProgress() { operation = engine.owner }
  }
}
