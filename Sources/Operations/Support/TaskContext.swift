/// A task that runs synchronous work later, on any thread, with the task-local values of the task that created the
/// context. Swift copies them only to a new task. The context therefore keeps the next job of a task, and runs the job
/// by hand around the work, which costs about a third as much as a task that Swift schedules itself.
final class TaskContext: Sendable {
  private let carrier = Carrier()
  /// The task in which ``run(_:)`` runs the work. Cancelling it sets `Task.isCancelled` there.
  let task: Task<Void, Never>

  /// Creates a context for one use. Returns nil outside of any task, where there are no values to inherit.
  init?() {
    guard Self.isInTask else { return nil }
    task = Task(executorPreference: carrier) { [carrier] in carrier.work?() }
  }

  init(detached: Void) { task = .detached(executorPreference: carrier) { [carrier] in carrier.work?() } }

  /// Creates a context for any number of uses, which has no values outside of any task.
  init(reusable: Void) {
    let runAll = { @Sendable [carrier] in await carrier.runAll() }
    task =
      Self.isInTask
      ? Task(executorPreference: carrier, operation: runAll)
      : .detached(executorPreference: carrier, operation: runAll)
  }

  /// The context in which this thread runs work outside of any other task.
  private static let outermost = ThreadLocal<TaskContext>()

  // A pattern, because `!= nil` copies the priority three times, and reading the task itself takes twice as long.
  private static var isInTask: Bool { if case .some = Task.basePriority { true } else { false } }

  /// Whether this thread runs a job that another executor has.
  static var isInJob: Bool { isInTask && outermost.current == nil }

  /// Runs the last job, because the task would leak.
  deinit { carrier.runJob() }

  /// Runs `work` in the task, on this thread and on no other at once.
  func run(_ work: () -> Void) {
    var hasRun = false
    func run() {
      carrier.runJob {
        hasRun = true
        work()
      }
    }
    if Self.isInTask { run() } else { Self.outermost.withValue(self, run) }
    if !hasRun { misuse("The job of this task context has been run before.") }
  }
}

/// An executor that keeps the next job of a task. Its context uses it on one thread at a time.
private final class Carrier: TaskExecutor, @unchecked Sendable {
  var work: (() -> Void)?
  private var job: UnownedJob?
  private var resume: (() -> Void)?

  func enqueue(_ job: consuming ExecutorJob) { self.job = UnownedJob(job) }

  func runJob(around work: () -> Void) {
    withoutActuallyEscaping(work) { work in
      self.work = work
      runJob()
      self.work = nil
    }
  }

  func runJob() {
    resume.take()?()
    guard let job = job.take() else { return }
    unsafe job.runSynchronously(on: asUnownedTaskExecutor())
  }

  func runAll() async {
    while runWork() { await withCheckedContinuation { continuation in resume = { continuation.resume() } } }
  }

  /// A method of its own, because a suspended task must not retain the work.
  private func runWork() -> Bool { work?() != nil }
}
