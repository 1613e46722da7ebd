/// The task-local values of the task that creates the context, for work that runs later.
///
/// A task inherits the values when it is created. The context therefore creates a task, keeps the task's only job
/// instead of letting it run, and runs the job by hand around the work. Creating a context and running its work cost
/// about a third of a task that Swift schedules itself.
final class TaskContext: Sendable {
  private let carrier: Carrier
  /// The task in which ``run(_:)`` runs the work. Cancelling it sets `Task.isCancelled` there.
  let task: Task<Void, Never>

  /// Returns nil outside of any task, where there are no values to inherit.
  init?() {
    guard unsafe withUnsafeCurrentTask(body: { unsafe $0 != nil }) else { return nil }
    carrier = Carrier()
    task = Task(executorPreference: carrier) { [carrier] in carrier.work?() }
  }

  /// A job must run, or its task leaks.
  deinit { carrier.runJob() }

  /// The priority of a task that this thread creates outside of the context. Inside the context, a task without a
  /// priority gets the priority of the task that created the context.
  static var currentPriority: TaskPriority {
    let priority = Task.currentPriority
    return priority.rawValue == 0 ? .medium : priority
  }

  /// Runs `work` on this thread, with the values. Call this once.
  func run(_ work: () -> Void) {
    withoutActuallyEscaping(work) { work in
      carrier.work = work
      carrier.runJob()
      carrier.work = nil
    }
  }
}

/// Keeps the job of a task that is never suspended, and so has no other.
///
/// The owner of the context uses it on one thread at a time.
private final class Carrier: TaskExecutor, @unchecked Sendable {
  var work: (() -> Void)?
  private var job: UnownedJob?

  func enqueue(_ job: consuming ExecutorJob) { self.job = UnownedJob(job) }

  func runJob() {
    guard let job = job.take() else { return }
    unsafe job.runSynchronously(on: asUnownedTaskExecutor())
  }
}
