/// An operation that runs a block and finishes when the block calls `finish`.
///
/// ```swift
/// let upload = AsyncBlockOperation { operation in
///   client.upload(file) { error in
///     if let error { operation.finish(with: error) } else { operation.finish() }
///   }
/// }
/// ```
///
/// The block is called at most once, on the thread that starts the operation, and released when it has returned or when
/// the operation has finished without executing. It does not inherit the task-local values of its creator.
public final class AsyncBlockOperation: AsyncOperation, @unchecked Sendable {
  /// Needs no lock: only one thread executes the operation, or finishes it unexecuted.
  private var block: (@Sendable (AsyncBlockOperation) -> Void)?
  private let place: EventOrigin

  /// Creates an operation that runs `block`, which calls `finish` on the operation, at once or later, on any thread.
  public init(
    _ block: @escaping @Sendable (AsyncBlockOperation) -> Void,
    file: StaticString = #fileID,
    line: UInt = #line
  ) {
    self.block = block
    place = EventOrigin(file: file, line: line)
    super.init()
  }

  public override func execute() { block.take()?(self) }

  override func willNotExecute() { _ = block.take() }

  override var origin: EventOrigin? { place }

  /// Not available: the block receives the operation.
  @available(*, unavailable, message: "The block receives the operation: { operation in operation.finish() }")
  public func callAsFunction() {}
}
