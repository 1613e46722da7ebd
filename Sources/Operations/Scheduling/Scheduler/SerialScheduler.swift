public import Foundation

/// Runs events one at a time, in the order in which they were scheduled: the home of objects that may only be touched
/// on it.
///
/// ```swift
/// let disk = SerialScheduler(name: "disk")
/// disk.schedule { print("on the scheduler") }
/// let size = try await disk.run { try measure(file) }
/// ```
///
/// It is an `OperationQueue` with a `maxConcurrentOperationCount` of 1. Events, jobs of actors that live on it, and
/// operations that are added to its ``queue`` share one line, first come, first served (operations that are ready, of
/// normal priority), and no two of them run at once. An event costs a small part of what an operation does: they gather
/// in a mailbox, and one operation runs what has gathered. Between events other schedulers get their turn on the
/// thread.
///
/// `schedule` never runs an event at once, not even on the scheduler itself. A scheduler that nobody holds runs what it
/// has accepted, also what was scheduled for a later time, and is released then.
///
/// Objects get to live on a scheduler as a ``ScheduledActor``, which the compiler checks; as ``Schedulable`` objects
/// with ``Confined`` properties, or within a ``SchedulableObject``, which are checked when the program runs.
///
/// Custom executors are SE-0392 and SE-0417.
public final class SerialScheduler: SerialExecutor, TaskExecutor, @unchecked Sendable {
  /// The scheduler of the main thread, on `OperationQueue.main`. It works under `RunLoop.main`, `dispatchMain()` and an
  /// asynchronous `main`.
  ///
  /// Its events are run for a few milliseconds at a time, so that drawing and input get their turn. They keep their
  /// order among themselves; operations that are added to `OperationQueue.main` directly, which is not the package's,
  /// run somewhere in between. It cannot be suspended or shut down.
  public static let main = SerialScheduler(main: OperationQueue.main)

  /// The one that runs the code of the current thread.
  static let running = ThreadLocal<SerialScheduler>()

  /// The scheduler that the code which asks is running on; nil if it is on none.
  public static var current: SerialScheduler? {
    if let running = running.current { return running }
    if MainQueue.isCurrent { return .main }
    return (OperationQueue.current as? SchedulerQueue)?.scheduler
  }

  /// What sentences, reports and traces call it. Need not be unique.
  public let name: String

  /// The queue on which the events are run, for operations that belong among them.
  ///
  /// Its `maxConcurrentOperationCount` is 1, and setting another traps, as does setting an `underlyingQueue`, or
  /// waiting from within until it is empty. An asynchronous operation in it keeps the scheduler until it has finished.
  /// `cancelAllOperations` cancels the operations that were added, and no events.
  ///
  /// An operation does not keep the scheduler alive, as events do: if nobody else does, ``current`` is nil in it.
  /// Foundation asks for its `isReady` while the line is locked: one that is overridden must neither schedule anything
  /// on another scheduler nor take a lock that is held elsewhere while something is scheduled.
  public let queue: OperationQueue
  let core: SchedulerCore
  let isMain: Bool
  /// What the queue's threads have by themselves.
  private let initialQualityOfService: QualityOfService

  /// - Parameters:
  ///   - name: For people: errors, traps and the debugger name it.
  ///   - qualityOfService: Of the thread that runs the events.
  ///   - capacity: How many events may wait, and what becomes of those that come then. Without one, as many as there
  ///     are.
  ///   - clock: For delayed events, ``recordsTimings`` and the ``watchdog``. A test may give it one that it moves by
  ///     hand.
  public init(
    name: String,
    qualityOfService: QualityOfService = .default,
    capacity: EventCapacity? = nil,
    clock: any Clock<Duration> = ContinuousClock()
  ) {
    self.name = name
    core = SchedulerCore(name, capacity, clock)
    let queue = SchedulerQueue(core, qualityOfService)
    self.queue = queue
    isMain = false
    initialQualityOfService = qualityOfService
    queue.scheduler = self
  }

  private init(main queue: OperationQueue) {
    name = "main"
    core = SchedulerCore(name, nil, ContinuousClock())
    self.queue = queue
    isMain = true
    initialQualityOfService = queue.qualityOfService
  }

  /// Whether the code that asks is running on this scheduler: within an event, a job, or an operation on its queue's
  /// thread.
  public var isCurrent: Bool { Self.running.isCurrent(self) ?? isCurrentQueue }

  /// Within an operation that was added to the queue, nobody has told us that it is ours.
  private var isCurrentQueue: Bool { isMain ? MainQueue.isCurrent : OperationQueue.current === queue }

  /// Of the thread that runs the events. One that is set counts for what comes after a pause, or after some
  /// milliseconds.
  public var qualityOfService: QualityOfService {
    get { queue.qualityOfService }
    set { queue.qualityOfService = newValue }
  }

  /// Nil if it is what the thread has anyhow, as Foundation does not look at the queue's where there is one of Dispatch
  /// beneath.
  var changedQualityOfService: QualityOfService? {
    let current = qualityOfService
    return current == initialQualityOfService ? nil : current
  }

  /// Whether what comes next has to wait, which is accepted all the same. The event being run goes on to its end.
  ///
  /// Actors on the scheduler wait as well, and who awaits them. The main scheduler cannot be suspended: that traps.
  public var isSuspended: Bool {
    get { queue.isSuspended }
    set {
      if isMain {
        misuse("The main scheduler cannot be suspended: it belongs to the whole program. Use one of your own.")
      }
      queue.isSuspended = newValue
    }
  }
}
