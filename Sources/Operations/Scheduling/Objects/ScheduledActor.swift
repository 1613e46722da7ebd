/// An actor that lives on a scheduler: the compiler checks that nobody touches it elsewhere.
///
/// ```swift
/// actor Printer: ScheduledActor {
///   nonisolated let scheduler: SerialScheduler
///   init(on scheduler: SerialScheduler) { self.scheduler = scheduler }
///   func show(_ line: String) { print(line) }
/// }
/// ```
///
/// Its methods are run among the events of the scheduler. Actors on the same scheduler call each other directly,
/// through `assumeIsolated`; what awaits gives the others their turn meanwhile, as everywhere with actors.
///
/// Custom executors are SE-0392.
public protocol ScheduledActor: Actor {
  /// Has to be the same as long as the actor lives.
  nonisolated var scheduler: SerialScheduler { get }
}

extension ScheduledActor {
  /// The actor's scheduler, for the runtime (SE-0392).
  public nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe scheduler.asUnownedSerialExecutor() }
}
