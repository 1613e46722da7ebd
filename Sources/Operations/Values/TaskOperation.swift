/// An operation whose work is an asynchronous function.
///
/// ```swift
/// let page = TaskOperation { try await session.data(from: url).0 }
/// ```
///
/// Create the operation with a closure, or write a subclass that overrides ``run()``.
///
/// ## Threads
///
/// The work runs in its own task and holds no thread of the queue: a thousand waiting task operations need two threads.
/// Each operation occupies one of the queue's `maxConcurrentOperationCount` slots.
///
/// ## Cancellation
///
/// Cancelling the operation cancels the task. Cancelling the task from inside cancels the operation, and so does
/// throwing a `CancellationError`. The operation finishes when the work has returned.
///
/// ## Task-local values
///
/// The work inherits the task-local values of the task that creates the operation, such as the context of a log or a
/// trace. An operation that is created outside of any task inherits none.
open class TaskOperation<Output: Sendable>: ResultOperation<Output>, @unchecked Sendable {
  private let priority: TaskPriority?
  /// The closure. Removed when the operation executes or ends.
  private var body: (@Sendable () async throws -> Output)?
  private var context = TaskContext()

  /// Creates an operation for a subclass that overrides ``run()``.
  ///
  /// - Parameter priority: The priority of the task. The default is that of the thread that starts the operation.
  public init(priority: TaskPriority? = nil) {
    self.priority = priority
    super.init()
  }

  /// Creates an operation that runs an asynchronous function in a task, and finishes with the value it returns or the
  /// error it throws.
  ///
  /// - Parameters:
  ///   - priority: The priority of the task. The default is that of the thread that starts the operation.
  ///   - body: The function. Called at most once.
  public init(priority: TaskPriority? = nil, _ body: @escaping @Sendable () async throws -> Output) {
    self.priority = priority
    self.body = body
    super.init()
  }

  /// Runs the work. Called at most once, in the operation's task. Do not call super.
  open func run() async throws -> Output {
    misuse("\(quotedName) has nothing to run: override run(), or give it a closure.")
  }

  public final override func execute() {
    let (body, context) = takeWork()
    let work = body ?? { try await self.run() }
    finishByTask(priority: priority, in: context, work)
  }

  final override var finishesByItself: Bool { true }

  final override func willNotExecute() { _ = takeWork() }

  private func takeWork() -> ((@Sendable () async throws -> Output)?, TaskContext?) { (body.take(), context.take()) }
}

extension ResultOperation {
  /// Finishes with the value that `body` returns or the error that it throws.
  ///
  /// `body` runs on this thread in the task of the context, which is cancelled with the operation.
  final func finish(byCalling body: () throws -> Output, in context: TaskContext) {
    adopt(context.task, while: .executing)
    guard let result = context.run({ Result(catching: body) }) else { return }
    releaseTask()
    finish(with: result)
  }

  /// Finishes with the value that `body` returns or the error that it throws.
  ///
  /// `body` runs in a task. Cancelling the operation cancels the task, and cancelling the task cancels the operation.
  ///
  /// - Parameters:
  ///   - priority: The priority of the task. The default is that of the current thread.
  ///   - context: The task-local values of the task. If it is nil, the task has none, even if the current task has some.
  final func finishByTask(
    priority: TaskPriority?,
    in context: TaskContext?,
    _ body: @escaping @Sendable () async throws -> Output
  ) {
    let own = priority ?? Self.currentPriority
    let priority = lentPriority.map { max($0, own) } ?? own
    let work = { @Sendable in await self.finish(byRunning: body) }
    guard let context else { return adopt(.detached(priority: priority, operation: work), while: .executing) }
    context.run { adopt(Task(priority: priority, operation: work), while: .executing) }
  }

  private func finish(byRunning body: @Sendable () async throws -> Output) async {
    let result: Result<Output, any Error>
    do {
      let output = try await withTaskCancellationHandler {
        try await CurrentWork.$innermost.withValue(self) { try await body() }
      } onCancel: {
        self.cancel()
      }
      result = .success(output)
    } catch { result = .failure(error) }
    releaseTask()
    if case .failure(is CancellationError) = result {
      cancel()
      finish()
    } else {
      finish(with: result)
    }
  }
}

/// A task that runs synchronous work later, on a thread of the caller's choice.
///
/// The work has the task-local values of the task that created the context, and `Task.isCancelled` reports whether
/// ``task`` has been cancelled. Swift gives the values to a task when it is created. The context therefore creates a
/// task, keeps the task's only job, and runs the job by hand around the work. Creating a context and running its work
/// costs about a third as much as a task that Swift schedules itself.
final class TaskContext: Sendable {
  private let carrier: Carrier
  /// The task in which ``run(_:)`` runs the work. Cancelling it sets `Task.isCancelled` there.
  let task: Task<Void, Never>

  /// Creates a context. Returns nil outside of any task, where there are no values to inherit.
  init?() {
    guard unsafe withUnsafeCurrentTask(body: { unsafe $0 != nil }) else { return nil }
    carrier = Carrier()
    task = Task(executorPreference: carrier) { [carrier] in carrier.work?() }
  }

  init(detached: Void) {
    carrier = Carrier()
    task = .detached(executorPreference: carrier) { [carrier] in carrier.work?() }
  }

  /// Runs the job if it has not run, because the task would leak.
  deinit { carrier.runJob() }

  /// Runs `work` on this thread in the task. Returns nil if the context has been used.
  @discardableResult
  func run<Value>(_ work: () -> Value) -> Value? {
    var value: Value?
    let keepValue = { value = work() }
    withoutActuallyEscaping(keepValue) { work in
      carrier.work = work
      carrier.runJob()
      carrier.work = nil
    }
    return value
  }
}

/// An executor that keeps the only job of a task, which never suspends. Its context uses it on one thread at a time.
private final class Carrier: TaskExecutor, @unchecked Sendable {
  var work: (() -> Void)?
  private var job: UnownedJob?

  func enqueue(_ job: consuming ExecutorJob) { self.job = UnownedJob(job) }

  func runJob() {
    guard let job = job.take() else { return }
    unsafe job.runSynchronously(on: asUnownedTaskExecutor())
  }
}
