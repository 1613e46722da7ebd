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
///
/// SE-0392 describes custom executors.
public protocol ScheduledActor: Actor {
  /// The actor's scheduler. It must not change.
  nonisolated var scheduler: SerialScheduler { get }
}

extension ScheduledActor {
  /// The scheduler as the actor's executor.
  public nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe scheduler.asUnownedSerialExecutor() }
}
