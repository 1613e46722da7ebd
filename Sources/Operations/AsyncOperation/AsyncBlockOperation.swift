/// An operation whose work is a block that sees to `finish()` itself.
///
/// ```swift
/// let upload = AsyncBlockOperation { operation in
///   client.upload(file) { error in
///     if let error { operation.finish(with: error) } else { operation.finish() }
///   }
/// }
/// ```
///
/// The block is called once at most, on the thread that starts the operation, and is released when it has returned or
/// the operation has finished without it.
public final class AsyncBlockOperation: AsyncOperation, @unchecked Sendable {
  private typealias Block = @Sendable (AsyncBlockOperation) -> Void

  public init(_ block: @escaping @Sendable (AsyncBlockOperation) -> Void) {
    super.init()
    core.withLock { $0.work = WorkBox<Block>(block) }
  }

  public override func execute() {
    let block = core.withLock { $0.takeWork(Block.self) }
    block?(self)
  }
}
