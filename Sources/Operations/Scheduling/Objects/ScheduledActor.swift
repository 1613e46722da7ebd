/// An actor whose methods run on a scheduler.
///
/// ```swift
/// actor Printer: ScheduledActor {
///   nonisolated let scheduler: SerialScheduler
///   init(on scheduler: SerialScheduler) { self.scheduler = scheduler }
///   func show(_ line: String) { print(line) }
/// }
///
/// printer.schedule { $0.show("Hello") }
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

  /// Schedules an event that is isolated to the actor, to run after all earlier events. Keeps the actor alive until then.
  ///
  /// - Returns: False if the event will not run, because the scheduler has been shut down or is full.
  @discardableResult
  public nonisolated func schedule(
    _ event: __owned @escaping @Sendable (isolated Self) -> Void,
    file: StaticString = #fileID,
    line: UInt = #line
  ) -> Bool {
    scheduler.schedule({ self.assumeOnExecutor(event) }, file: file, line: line)
  }

  /// Runs `body` on the actor at once, or traps if the code does not run on the actor's scheduler.
  ///
  /// Unlike the trap of the standard library's method, this one names the actor's type and the calling file and line.
  @_documentation(visibility: internal)
  public nonisolated func assumeIsolated<T: Sendable>(
    _ body: (isolated Self) throws -> T,
    file: StaticString = #fileID,
    line: UInt = #line
  ) rethrows -> T {
    if !scheduler.isCurrent { scheduler.refuseAccess(to: "The actor “\(Self.self)”", file: file, line: line) }
    return try assumeOnExecutor(body)
  }
}

extension Actor {
  fileprivate nonisolated func assumeOnExecutor<T: Sendable>(_ body: (isolated Self) throws -> T) rethrows -> T {
    try assumeIsolated(body)
  }
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
    if !isCurrent { refuseAccess(to: "An actor") }
  }

  fileprivate func refuseAccess(to subject: String, file: StaticString = #fileID, line: UInt = #line) -> Never {
    let message = "\(subject) on “\(name)” was accessed \(SchedulerViolation.place(Self.current?.name))."
    misuse(message + " Await the actor, or schedule an event on “\(name)”.", file: file, line: line)
  }

  /// Returns true if the code runs on the scheduler, and nil otherwise (SE-0471).
  ///
  /// After nil, the runtime calls ``checkIsolated()``, whose message names the schedulers. After false, it would trap.
  @available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *)
  public func isIsolatingCurrentContext() -> Bool? { isCurrent ? true : nil }
}
