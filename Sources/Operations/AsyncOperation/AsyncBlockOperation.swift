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
  /// Taken by execution or, if that never comes, by the end: the lifecycle sees to it that there is only one of them.
  private var block: (@Sendable (AsyncBlockOperation) -> Void)?

  /// - Parameter block: Begins the work, on the thread that starts the operation. It sees to it that `finish` is
  ///   called, there or later, on any thread. Released when it has been called, or never will be.
  public init(_ block: @escaping @Sendable (AsyncBlockOperation) -> Void) {
    self.block = block
    super.init()
  }

  public override func execute() { takeBlock()?(self) }

  override func dropWork() { _ = takeBlock() }

  private func takeBlock() -> (@Sendable (AsyncBlockOperation) -> Void)? {
    defer { block = nil }
    return block
  }
}
