public import Foundation

/// An operation that transfers data from one Foundation operation of any type to another.
///
/// The adapter runs between the two: `source ==> adapter ==> target`.
///
/// ```swift
/// let adapter = AdapterOperation(from: download, to: unpack) { download, unpack in unpack.file = download.file }
/// queue.addOperations([download, adapter, unpack])
/// ```
///
/// The adapter adds the dependencies itself, and must be enqueued like any other operation. From an ``OutputOperation``
/// to an ``AsyncOperation``, `pass` transfers the value without an adapter. Neither closure inherits task-local values.
///
/// ## Failures and cancellation
///
/// If the source was cancelled or has errors, or the transfer throws, the target is cancelled. A target that is an
/// ``AsyncOperation`` is cancelled with ``OperationError/Code/inputUnavailable``. A plain Foundation source reports no
/// errors, so only its cancellation counts. Cancelling the adapter before the transfer cancels the target. A target that
/// is already cancelled when the adapter executes receives nothing.
///
/// ## Memory
///
/// An adapter that never runs keeps itself and a plain target alive, which Foundation on Linux would use after its release.
public final class AdapterOperation<Source: Operation, Target: Operation>: AsyncOperation, @unchecked Sendable {
  /// The source. The reference is weak, because the ledger holds the source until the end.
  private weak var source: Source?
  /// The target until the transfer. Weak, because the target holds this operation. Guarded by the lock of the core.
  private weak var target: Target?
  private let policy: InputPolicy
  /// Needs no lock: only one thread executes the operation, or finishes it unexecuted.
  private var transfer: (@Sendable (Source, Target) throws -> Void)?

  /// Creates an adapter.
  ///
  /// - Precondition: `source` and `target` are different operations, and `target` has not been started.
  /// - Parameters:
  ///   - source: The operation that the adapter waits for.
  ///   - target: The operation that waits for the adapter.
  ///   - policy: Whether the target is cancelled if the source was cancelled or has errors. With
  ///     ``InputPolicy/optional``, the transfer runs in any case.
  ///   - transfer: A closure that runs on the adapter's thread after the source has finished and before the target
  ///     starts.
  public init(
    from source: Source,
    to target: Target,
    input policy: InputPolicy = .required,
    _ transfer: @escaping @Sendable (Source, Target) throws -> Void
  ) {
    self.source = source
    self.target = target
    self.policy = policy
    self.transfer = transfer
    super.init()
    // Keeps a plain target, because Foundation on Linux may use it until its dependencies have finished.
    if !(target is AsyncOperation) { whenFinished { withExtendedLifetime(target) {} } }
    // Otherwise the target would wait for itself through the adapter.
    target.refuseSelfDependency(source)
    source ==> self ==> target
  }

  public override func execute() {
    let target = core.withLock { _ in self.target }
    guard let transfer = transfer.take(), let source, let target, !target.isCancelled else { return finish() }
    if policy == .required, let obstacle = obstacle(in: source) {
      cancelTargetUnlessTransferred(from: source, because: obstacle)
      cancel(with: OperationError.inputUnavailable(to: self, from: source, because: obstacle))
      return finish()
    }
    do {
      try transfer(source, target)
      core.withLock { _ in self.target = nil }
      finish()
    } catch { finish(with: error) }
  }

  override var finishesByItself: Bool { true }

  override func willNotExecute() { transfer = nil }

  private func obstacle(in source: Source) -> (any Error)? {
    guard let own = source as? AsyncOperation else { return source.isCancelled ? CancellationError() : nil }
    return own.outcomeError
  }

  override func prepareToFinish() {
    cancelTargetUnlessTransferred(from: self, because: outcomeError ?? CancellationError())
  }

  private func cancelTargetUnlessTransferred(from producer: Operation, because cause: @autoclosure () -> any Error) {
    guard let target = core.withLock({ _ in target }), !target.isCancelled, !target.isFinished else { return }
    guard let own = target as? AsyncOperation else { return target.cancel() }
    own.cancel(with: OperationError.inputUnavailable(to: own, from: producer, because: cause()))
  }
}
