public import Foundation
import Synchronization

/// A scheduler that runs events one at a time, in the order in which they were scheduled.
///
/// Access the mutable objects that belong to a scheduler only in its events:
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
/// scheduler, and operations in its ``queue`` run one at a time, in order of arrival. An operation keeps its place only
/// if it is ready when it is added and has normal priority.
///
/// ## Threads
///
/// An event runs on the queue's thread, never inline in `schedule`. Events gather in a mailbox, and one operation runs
/// all of them, so an event costs a fraction of an operation. Between events, a busy scheduler yields its thread.
///
/// ## Lifetime
///
/// Accepted events, including delayed ones, keep the scheduler alive until they have run.
///
/// ## Objects
///
/// There are three ways to make an object belong to a scheduler:
///
/// - An actor conforms to ``ScheduledActor``. The compiler checks every access.
/// - A class conforms to ``Schedulable`` and has ``Confined`` properties, which check every access at run time.
/// - A ``SchedulableObject`` wraps an object of any type and checks every access at run time.
///
/// SE-0392 and SE-0417 describe custom executors.
public final class SerialScheduler: SerialExecutor, TaskExecutor, @unchecked Sendable {
  /// The scheduler of the main thread.
  ///
  /// The main scheduler works with `RunLoop.main`, `dispatchMain()` and an asynchronous `main`. It cannot be suspended
  /// or shut down. Split a long burst of events, which delays drawing and user input.
  ///
  /// What one thread sends to the main thread arrives in the order in which it was sent: events, blocks of
  /// `DispatchQueue.main`, tasks on the main actor, each ``MainOperation``, and what `onFinishOnMain` and
  /// ``OperationObserver/onMain(didStart:didCancel:didFinish:)`` call. An operation in `OperationQueue.main` overtakes
  /// nothing, but while several wait there, Foundation sends each one only when the one before has finished.
  ///
  /// An event that is cancelled or replaced is also released on the main thread.
  public static let main = SerialScheduler(main: OperationQueue.main)

  static let running = ThreadLocal<SerialScheduler>()

  /// The scheduler on which the current code runs, or nil.
  public static var current: SerialScheduler? {
    if let running = running.current { return running }
    if DispatchQueue.isMainCurrent { return .main }
    return (OperationQueue.current as? SchedulerQueue)?.scheduler
  }

  /// The name used in messages, reports and traces. It need not be unique.
  public let name: String

  /// The queue that runs the events. Add operations that must run in order with the events to this queue.
  ///
  /// An asynchronous operation in the queue occupies the scheduler until it has finished. `cancelAllOperations` cancels
  /// the added operations and no events. An operation does not keep the scheduler alive. In an operation that outlives
  /// its scheduler, ``current`` is nil.
  ///
  /// Setting `underlyingQueue`, setting `maxConcurrentOperationCount` to a value other than 1, or waiting for the queue
  /// from the scheduler itself traps.
  ///
  /// - Important: While an operation is added, Foundation reads its `isReady`, and on Apple platforms notifies key-value
  ///   observers of `operations` and `operationCount`, under a lock of the scheduler. Such code must not wait for another
  ///   thread, not schedule events on another scheduler, and not take a lock that other code holds while it schedules
  ///   events.
  public let queue: OperationQueue
  /// The quality of service of the underlying dispatch queue.
  let initialQualityOfService: QualityOfService
  let capacity: EventCapacity?
  let mailbox: Locked<Mailbox>
  let time: ElapsedTime
  let instruments = Locked(SchedulerInstruments())
  // The scheduler's thread writes the counts, and any thread can read them.
  let eventsBegun = Atomic(0)
  let eventsRun = Atomic(0)
  let jobsBegun = Atomic(0)
  private let modes = Atomic<UInt8>(0)

  /// Keeps operations and drains in the order of the segments. Recursive, because Foundation is called under it and may
  /// call an overridden `isReady`, which may schedule an event. A thread that takes it must hold no other lock. Without it,
  /// a drain enqueued before an operation could run events that were scheduled after the operation.
  let ordering = NSRecursiveLock()

  /// Creates a scheduler.
  ///
  /// - Parameters:
  ///   - name: The name used in messages, reports and traces.
  ///   - qualityOfService: The quality of service of the thread that runs the events.
  ///   - capacity: The number of events that may wait, and what happens to further events. Nil means no limit.
  ///   - clock: The clock for delayed events, ``recordsTimings`` and the ``watchdog``. Tests can pass a manual clock.
  public init(
    name: String,
    qualityOfService: QualityOfService = .default,
    capacity: EventCapacity? = nil,
    clock: any Clock<Duration> = ContinuousClock()
  ) {
    let queue = SchedulerQueue(name, qualityOfService)
    self.name = name
    self.queue = queue
    initialQualityOfService = qualityOfService
    self.capacity = capacity
    mailbox = Locked(Mailbox(capacity))
    time = ElapsedTime(clock)
    queue.scheduler = self
  }

  private init(main queue: OperationQueue) {
    name = "main"
    self.queue = queue
    initialQualityOfService = queue.qualityOfService
    capacity = nil
    mailbox = Locked(Mailbox(nil))
    time = ElapsedTime(ContinuousClock())
  }

  var isMain: Bool { queue === OperationQueue.main }

  /// Whether the current code runs on this scheduler: in an event, in a job, or in an operation on the queue's thread.
  public var isCurrent: Bool {
    // An operation that was added to the queue does not set `running`.
    Self.running.isCurrent(self) ?? (isMain ? DispatchQueue.isMainCurrent : OperationQueue.current === queue)
  }

  /// The quality of service of the thread that runs the events.
  ///
  /// A busy scheduler applies a new value within a few milliseconds. An idle scheduler applies it to the next event. A
  /// new value cannot lower the quality below that with which the scheduler was created.
  public var qualityOfService: QualityOfService {
    get { queue.qualityOfService }
    set { queue.qualityOfService = newValue }
  }

  /// Whether the scheduler is suspended. A suspended scheduler accepts events but runs none.
  ///
  /// An event that is running finishes. Jobs of actors on the scheduler also wait, and so do their callers.
  ///
  /// - Precondition: The scheduler is not ``main``, which belongs to the whole program.
  public var isSuspended: Bool {
    get { queue.isSuspended }
    set {
      refuseMain("suspended", "Suspend")
      queue.isSuspended = newValue
    }
  }

  private func refuseMain(_ state: String, _ remedy: String) {
    if !isMain { return }
    misuse("The main scheduler cannot be \(state): the program depends on it. \(remedy) a scheduler of your own.")
  }

  /// What happens to accepted events when a scheduler is shut down.
  public enum ShutdownMode: Sendable {
    /// The events run.
    case drain
    /// The events are dropped. Callers that wait for a dropped event receive ``OperationError/Code/shutDown``.
    case discard
  }

  /// Whether the scheduler has been shut down and refuses events.
  public var isShutDown: Bool { mailbox.withLock { $0.isShutDown } }

  /// Shuts the scheduler down, so that it refuses all further events.
  ///
  /// After a shutdown `schedule` returns false, and `run`, `send` and `wait` throw ``OperationError/Code/shutDown``.
  /// Delayed events that are not due are dropped. The mode decides whether accepted events that wait still run.
  ///
  /// Jobs of actors and tasks run even after a shutdown, because their callers would otherwise never resume.
  ///
  /// The method returns immediately. Await ``drained()`` to wait for the accepted events. Before a shutdown, read all
  /// values that you need from the scheduler's objects.
  ///
  /// - Precondition: The scheduler is not ``main``, which belongs to the whole program.
  public func shutDown(_ mode: ShutdownMode = .drain) {
    refuseMain("shut down", "Shut down")
    if mode == .discard { set(.discarding, to: true) }
    let (refused, released) = mailbox.withLock { $0.shutDown(discarding: mode == .discard) }
    for body in refused { body(OperationError.shutDown(name)) }
    withExtendedLifetime(released) {}
    updateTimer()
  }

  /// Suspends until all events and jobs accepted so far have run.
  ///
  /// The method does not wait for delayed events that are not due. It works even after a shutdown, and blocks no
  /// thread. The wait also ends when the waiting task is cancelled.
  public func drained() async {
    await waitOrUnregister { resume in
      withOpenSegment(evenIfShutDown: true) { $0.append(.mark(resume)) }
      return nil
    }
  }

  /// What a drain and `schedule` check for each event, with one relaxed load.
  struct Mode: OptionSet {
    let rawValue: UInt8
    static let discarding = Self(rawValue: 1)
    static let instrumented = Self(rawValue: 2)
    static let suspended = Self(rawValue: 4)

    var isPlain: Bool { isDisjoint(with: [.discarding, .instrumented]) }
  }

  var mode: Mode { Mode(rawValue: modes.load(ordering: .relaxed)) }

  func set(_ mode: Mode, to isOn: Bool) {
    _ = isOn ? modes.bitwiseOr(mode.rawValue, ordering: .relaxed) : modes.bitwiseAnd(~mode.rawValue, ordering: .relaxed)
  }
}

extension Atomic<Int> {
  var count: Int { load(ordering: .acquiring) }

  // A load and a store suffice because only one thread writes at a time. They cost a fraction of an atomic addition.
  @inline(__always)
  func countUp() { store(load(ordering: .relaxed) &+ 1, ordering: .releasing) }
}
