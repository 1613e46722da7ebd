/// An actor whose methods run on a scheduler.
///
/// ```swift
/// actor Printer: ScheduledActor {
///   nonisolated let scheduler: SerialScheduler
///   init(on scheduler: SerialScheduler) { self.scheduler = scheduler }
///   func show(_ line: String) { print(line) }
/// }
/// ```
///
/// The methods run in order with the events of the scheduler, and the compiler checks all access. Actors on the same
/// scheduler can call each other directly through `assumeIsolated`. As with any actor, other code can run on the
/// scheduler while a method is suspended in an `await`.
public protocol ScheduledActor: Actor {
  /// The actor's scheduler. It must not change.
  nonisolated var scheduler: SerialScheduler { get }
}

extension ScheduledActor {
  /// The scheduler as the actor's executor.
  public nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe scheduler.asUnownedSerialExecutor() }
}

extension SerialScheduler {
  /// Enqueues a job of an actor on this scheduler, or of a task that prefers this scheduler.
  ///
  /// Jobs run in order with the events, even after a shutdown. They do not count toward the capacity. The runtime may
  /// run a task in two jobs, so a later event can overtake the code of a `Task(executorPreference:)`.
  public func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    withOpenSegment(evenIfShutDown: true) { $0.post(job) }
  }

  /// Returns a reference to the scheduler, which a ``ScheduledActor`` returns as its `unownedExecutor` (SE-0392).
  public func asUnownedSerialExecutor() -> UnownedSerialExecutor { unsafe UnownedSerialExecutor(ordinary: self) }

  /// Traps if the code does not run on the scheduler.
  ///
  /// The runtime calls this method for `assumeIsolated` and similar checks that it cannot decide itself (SE-0424).
  public func checkIsolated() {
    if isCurrent { return }
    let place = SchedulerViolation.place(Self.current?.name)
    misuse("An actor on “\(name)” was accessed \(place). Await the actor, or schedule an event on “\(name)”.")
  }

  /// Returns true if the code runs on the scheduler, and nil otherwise (SE-0471).
  ///
  /// After nil, the runtime calls ``checkIsolated()``, whose message names the schedulers. After false, it would trap.
  @available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *)
  public func isIsolatingCurrentContext() -> Bool? { isCurrent ? true : nil }
}
