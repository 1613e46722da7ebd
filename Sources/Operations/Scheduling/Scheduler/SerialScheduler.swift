public import Foundation

/// Runs events one at a time, in the order in which they were scheduled.
///
/// Mutable objects belong to a scheduler, and are accessed only in its events:
///
/// ```swift
/// let disk = SerialScheduler(name: "disk")
/// disk.schedule { print("on the scheduler") }
/// let size = try await disk.run { try measure(file) }
/// ```
///
/// ## Order
///
/// A scheduler is built on an `OperationQueue` whose `maxConcurrentOperationCount` is 1. Events, jobs of actors on the
/// scheduler, and operations in its ``queue`` run in order of arrival, and never two at once. An operation keeps its
/// place only if it is ready when it is added and has normal priority.
///
/// ## Threads
///
/// An event runs on the queue's thread, never inline in `schedule`. Events gather in a mailbox, and one operation runs
/// all of them, so an event costs a fraction of an operation. Between events a busy scheduler yields the thread to
/// others.
///
/// ## Lifetime
///
/// A scheduler without other references lives until it has run its accepted events, including the delayed ones.
///
/// ## Objects
///
/// An actor belongs to a scheduler by conforming to ``ScheduledActor``, which the compiler checks. A class conforms to
/// ``Schedulable`` and has ``Confined`` properties, or is wrapped in a ``SchedulableObject``. Both are checked at run
/// time. SE-0392 and SE-0417 describe custom executors.
public final class SerialScheduler: SerialExecutor, TaskExecutor, @unchecked Sendable {
  /// The scheduler of the main thread, on `OperationQueue.main`.
  ///
  /// It works with `RunLoop.main`, `dispatchMain()` and an asynchronous `main`. It runs events for a few milliseconds
  /// at a time, so that drawing and user input are not delayed. Events keep their order among themselves. Operations
  /// added to `OperationQueue.main` directly run anywhere among them. The main scheduler cannot be suspended or shut
  /// down.
  public static let main = SerialScheduler(main: OperationQueue.main)

  /// The scheduler whose events the current thread runs.
  static let running = ThreadLocal<SerialScheduler>()

  /// The scheduler on which the current code runs, or nil.
  public static var current: SerialScheduler? {
    if let running = running.current { return running }
    if MainQueue.isCurrent { return .main }
    return (OperationQueue.current as? SchedulerQueue)?.scheduler
  }

  /// The name used in messages, reports and traces. It need not be unique.
  public let name: String

  /// The queue that runs the events. Add operations to it that must run in order with the events.
  ///
  /// An asynchronous operation in the queue occupies the scheduler until it has finished. `cancelAllOperations` cancels
  /// the added operations and no events. An operation does not keep the scheduler alive: if nothing else does,
  /// ``current`` is nil in the operation.
  ///
  /// Setting `underlyingQueue`, setting `maxConcurrentOperationCount` to anything but 1, or waiting for the queue from
  /// the scheduler itself traps.
  ///
  /// - Important: Foundation reads an operation's `isReady` while the scheduler is locked. An override must not
  ///   schedule events on another scheduler, and must not take a lock that other code holds while it schedules events.
  public let queue: OperationQueue
  let core: SchedulerCore
  let isMain: Bool
  private let initialQualityOfService: QualityOfService

  /// Creates a scheduler.
  ///
  /// - Parameters:
  ///   - name: The name used in messages, reports and traces.
  ///   - qualityOfService: The quality of service of the thread that runs the events.
  ///   - capacity: The number of events that may wait, and what happens to further ones. Nil means no limit.
  ///   - clock: The clock for delayed events, ``recordsTimings`` and the ``watchdog``. Tests can pass a manual clock.
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

  /// Whether the current code runs on this scheduler: in an event, in a job, or in an operation on the queue's thread.
  public var isCurrent: Bool { Self.running.isCurrent(self) ?? isCurrentQueue }

  /// Whether the current code is an operation that was added to the queue. ``running`` is not set for those.
  private var isCurrentQueue: Bool { isMain ? MainQueue.isCurrent : OperationQueue.current === queue }

  /// The quality of service of the thread that runs the events.
  ///
  /// A busy scheduler applies a new value within some milliseconds, an idle one to the next event.
  public var qualityOfService: QualityOfService {
    get { queue.qualityOfService }
    set { queue.qualityOfService = newValue }
  }

  /// The quality of service that drains must set themselves, or nil if it is the thread's own.
  ///
  /// Foundation ignores the quality of service of a queue with an underlying dispatch queue.
  var changedQualityOfService: QualityOfService? {
    let current = qualityOfService
    return current == initialQualityOfService ? nil : current
  }

  /// Whether the scheduler is suspended. While it is, it accepts events but runs none.
  ///
  /// The running event continues to its end. Jobs of actors on the scheduler wait, too, and so do their callers.
  ///
  /// - Precondition: This is not the main scheduler, which belongs to the whole program.
  public var isSuspended: Bool {
    get { queue.isSuspended }
    set {
      if isMain {
        misuse(
          "The main scheduler cannot be suspended, because the whole program depends on it. Suspend a scheduler of "
            + "your own."
        )
      }
      queue.isSuspended = newValue
    }
  }
}
