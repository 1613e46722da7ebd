/// An operation that transforms its input value into an output value.
///
/// ```swift
/// let parse = TransformOperation { (data: Data) in try JSONDecoder().decode(Page.self, from: data) }
/// download.pass(to: parse).pass(to: store)
/// ```
///
/// Create the operation with a closure, or write a subclass that overrides ``transform(_:)``. A synchronous closure
/// runs on the queue's thread. An asynchronous closure and the method run in a task, as in ``TaskOperation``. In each,
/// `Task.isCancelled` reports whether the operation has been cancelled.
///
/// Without an input, it fails with ``OperationError/Code/inputUnavailable``. A missing optional input is nil.
open class TransformOperation<Input: Sendable, Output: Sendable>: ResultOperation<Output>, InputOperation,
  @unchecked Sendable
{
  private let isSynchronous: Bool
  private var storedInput: Input?
  /// The closures need no lock: only one thread executes the operation, or finishes it unexecuted.
  private var closure: (@Sendable (Input) throws -> Output)?
  private var asynchronousClosure: (@Sendable (Input) async throws -> Output)?

  /// Creates an operation for a subclass that overrides ``transform(_:)``.
  public override init() {
    isSynchronous = false
    super.init(in: TaskContext())
  }

  /// Creates an operation that calls `transform` on the queue's thread.
  public init(_ transform: @escaping @Sendable (Input) throws -> Output) {
    isSynchronous = true
    closure = transform
    super.init(in: TaskContext())
  }

  /// Creates an operation that calls `transform` in a task, which is cancelled with the operation.
  public init(_ transform: @escaping @Sendable (Input) async throws -> Output) {
    isSynchronous = false
    asynchronousClosure = transform
    super.init(in: TaskContext())
  }

  /// The input value. Set by another operation that passes it, or by the caller before the operation executes. Can be
  /// read and written on any thread.
  public final var input: Input? {
    get { core.withLock { _ in storedInput } }
    set {
      // The old input is released after the lock.
      _ = core.withLock { _ in exchange(&storedInput, with: newValue) }
    }
  }

  /// Transforms the input value. Called at most once, in the operation's task. Do not call super.
  open func transform(_ input: Input) async throws -> Output {
    misuse("\(quotedName) has nothing to do. Override transform(_:), or create it with a closure.")
  }

  public final override func execute() {
    let input = input ?? ((Input.self as? any OptionalInput.Type)?.none as? Input)
    guard let input else { return finish(with: inputMissingError) }
    if let closure = closure.take() { return finish(byCalling: { try closure(input) }) }
    let transform = asynchronousClosure.take() ?? { try await self.transform($0) }
    finishByTask { try await transform(input) }
  }

  final override var finishesByItself: Bool { true }

  final override var beginsElsewhere: Bool { !isSynchronous && input != nil }

  final override func willNotExecute() {
    closure = nil
    asynchronousClosure = nil
    context = nil
  }
}

/// An operation with an input value. Another operation can pass the value: see <doc:PassingData>.
public protocol InputOperation<Input>: AsyncOperation {
  /// The type of the input value.
  associatedtype Input: Sendable

  /// The input value. A passed value is set before the operation executes, on the executing thread.
  var input: Input? { get set }
}

extension AsyncOperation {
  var inputMissingError: OperationError {
    let message = "\(quotedName) has no input. Pass it another operation's output, or set its input."
    return OperationError(.inputUnavailable, message)
  }
}

/// The effect on a consumer of a producer that failed, was cancelled, or finished without a value.
public enum InputPolicy: Sendable {
  /// The default: the consumer is cancelled with ``OperationError/Code/inputUnavailable``, and so are its own consumers.
  case required
  /// The consumer executes without the value.
  case optional
}

/// An optional, and no other type that `nil` can stand for.
private protocol OptionalInput {
  static var none: Self { get }
}

extension Optional: OptionalInput {}
