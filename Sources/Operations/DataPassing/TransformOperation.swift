/// An operation that turns a value that is passed to it into another.
///
/// ```swift
/// let parse = TransformOperation { (data: Data) in try JSONDecoder().decode(Page.self, from: data) }
/// download.pass(to: parse).pass(to: store)
/// ```
///
/// Give it a closure, or subclass it and override ``transform(_:)``. A synchronous closure runs on the queue's thread;
/// the other two run in a task that is cancelled with the operation, as in ``TaskOperation``.
///
/// Without an input it fails with ``OperationError/Code/inputUnavailable``, unless `Input` is optional: then that is
/// nil.
open class TransformOperation<Input: Sendable, Output: Sendable>: ResultOperation<Output>, InputOperation,
  @unchecked Sendable
{
  private enum Work {
    case method
    case closure(@Sendable (Input) throws -> Output)
    case asynchronousClosure(@Sendable (Input) async throws -> Output)
  }

  /// Guarded by the lock of the core.
  private var storedInput: Input?
  /// Taken by execution or, if that never comes, by the end.
  private var work: Work?

  /// For subclasses, which override ``transform(_:)``.
  public override init() {
    work = .method
    super.init()
  }

  /// An operation that runs `transform` on its queue's thread.
  public init(_ transform: @escaping @Sendable (Input) throws -> Output) {
    work = .closure(transform)
    super.init()
  }

  /// An operation that runs `transform` in a task, which is cancelled with it.
  public init(_ transform: @escaping @Sendable (Input) async throws -> Output) {
    work = .asynchronousClosure(transform)
    super.init()
  }

  /// What to work with. Passed by another operation, or set before the operation executes. May be read and written on
  /// any thread.
  public final var input: Input? {
    get { core.withLock { _ in storedInput } }
    set {
      let old = core.withLock { _ in
        defer { storedInput = newValue }
        return storedInput
      }
      _ = consume old
    }
  }

  /// The work. Called once at most, in the operation's task; do not call super.
  open func transform(_ input: Input) async throws -> Output {
    misuse("\(quotedName) has nothing to do: override transform(_:), or give it a closure.")
  }

  public final override func execute() {
    guard let input = input ?? noInput, let work = takeWork() else { return finish(with: inputMissingError) }
    switch work {
    case .closure(let transform):
      do { finish(returning: try transform(input)) } catch { finish(with: error) }
    case .asynchronousClosure(let transform): finishByTask(priority: nil) { try await transform(input) }
    case .method: finishByTask(priority: nil) { try await self.transform(input) }
    }
  }

  /// Nil as an input, where that is one.
  private var noInput: Input? {
    (Input.self as? any ExpressibleByNilLiteral.Type).flatMap { $0.init(nilLiteral: ()) as? Input }
  }

  final override var finishesByItself: Bool { true }

  final override func dropWork() { _ = takeWork() }

  private func takeWork() -> Work? {
    defer { work = nil }
    return work
  }
}
