public import Foundation

/// Carries something from one Foundation operation of any kind to another: `source ==> adapter ==> target`.
///
/// ```swift
/// let adapter = AdapterOperation(from: download, to: unpack) { download, unpack in unpack.file = download.file }
/// queue.addOperations([download, adapter, unpack])
/// ```
///
/// It makes the dependencies itself, and is to be enqueued as any other operation. Between two operations of the
/// toolkit `pass` does without a third.
///
/// If the source was cancelled or has errors, or the transfer throws, the target is cancelled: one of the toolkit with
/// ``OperationError/Code/inputUnavailable``. What a plain Foundation operation met with is not known, so only its
/// cancellation counts. An adapter to a plain operation that is never run keeps itself and that operation alive:
/// Foundation, on Linux, would use the target after it has gone away. A target that is cancelled when its turn comes
/// gets nothing.
public final class AdapterOperation<Source: Operation, Target: Operation>: AsyncOperation, @unchecked Sendable {
  private struct Job {
    /// Taken by execution or, if that never comes, by the end.
    var transfer: (@Sendable (Source, Target) throws -> Void)?
    /// A plain target must not go away before its dependencies have finished: Foundation, on Linux, would use it still.
    /// Kept until the adapter has finished, whatever way it does.
    var plainTarget: Target?
    var hasTransferred = false
    /// What there was not to transfer.
    var missing: MissingInput?
  }

  /// The ledger holds the source until the end, and the target holds this operation.
  private weak var source: Source?
  private weak var target: Target?
  private let policy: InputPolicy
  private let job: Locked<Job>

  /// - Precondition: `source` and `target` are two operations, and `target` has not been started.
  /// - Parameters:
  ///   - source: What is waited for.
  ///   - target: What waits. It is cancelled if the source was cancelled or has errors.
  ///   - transfer: Runs on the adapter's thread when the source has finished, and before the target starts.
  public convenience init(
    from source: Source,
    to target: Target,
    _ transfer: @escaping @Sendable (Source, Target) throws -> Void
  ) {
    self.init(from: source, to: target, input: .required, transfer)
  }

  /// - Parameters:
  ///   - source: What is waited for.
  ///   - target: What waits.
  ///   - policy: Whether the target is cancelled if the source was cancelled or has errors. If the input is optional,
  ///     the transfer is carried out all the same.
  ///   - transfer: Runs on the adapter's thread when the source has finished, and before the target starts.
  public init(
    from source: Source,
    to target: Target,
    input policy: InputPolicy,
    _ transfer: @escaping @Sendable (Source, Target) throws -> Void
  ) {
    self.source = source
    self.target = target
    self.policy = policy
    job = Locked(Job(transfer: transfer, plainTarget: target is AsyncOperation ? nil : target))
    super.init()
    whenSettled { [job] in
      let target = job.withLock { job in
        defer { job.plainTarget = nil }
        return job.plainTarget
      }
      withExtendedLifetime(target) {}
    }
    // Through the adapter it would wait for itself.
    target.refuseSelfDependency(source)
    source ==> self ==> target
  }

  public override func execute() {
    let transfer = job.withLock { job in
      defer { job.transfer = nil }
      return job.transfer
    }
    guard let transfer, let source, let target, !target.isCancelled else { return finish() }
    if policy == .required, let obstacle = obstacle(in: source) {
      let missing = MissingInput(producer: source, cause: obstacle)
      job.withLock { $0.missing = missing }
      cancel(with: OperationError.inputUnavailable(to: self, [missing]))
      return finish()
    }
    do {
      try transfer(source, target)
      job.withLock { $0.hasTransferred = true }
      finish()
    } catch { finish(with: error) }
  }

  override var finishesByItself: Bool { true }

  private func obstacle(in source: Source) -> (any Error)? {
    guard let own = source as? AsyncOperation else { return source.isCancelled ? CancellationError() : nil }
    return own.outcomeError
  }

  /// Before the target can see that this has finished.
  override func willFinish() {
    let job = job.withLock { job in
      defer { (job.transfer, job.missing) = (nil, nil) }
      return job
    }
    guard !job.hasTransferred, let target, !target.isCancelled, !target.isFinished else { return }
    guard let own = target as? AsyncOperation else { return target.cancel() }
    let missing = job.missing ?? MissingInput(producer: self, cause: outcomeError ?? CancellationError())
    own.cancel(with: OperationError.inputUnavailable(to: own, [missing]))
  }
}
