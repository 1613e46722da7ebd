extension SerialScheduler {
  /// Takes in a piece of a task: of an actor that lives on this scheduler, or of a task that prefers it.
  ///
  /// It has its place among the events. It is run whatever happens to the scheduler, and no capacity counts it.
  public func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    let isPosted = core.mailbox.withLock { $0.post(job) }
    if !isPosted { core.post(always: true, enqueue: enqueue) { _ = $0.post(job) } }
  }

  /// For an actor that is no ``ScheduledActor``: to be returned from its `unownedExecutor` (SE-0392).
  public func asUnownedSerialExecutor() -> UnownedSerialExecutor { unsafe UnownedSerialExecutor(ordinary: self) }

  /// Called by the runtime, for `assumeIsolated` and its like, when it does not know by itself (SE-0424).
  public func checkIsolated() {
    if isCurrent { return }
    misuse(
      "An actor on the scheduler “\(name)” was expected to be isolated here, and this is "
        + SchedulerViolation.place(Self.current?.name) + ". Await the actor, or schedule an event on “\(name)”."
    )
  }

  /// True, or nil for “not as far as known”, upon which the runtime asks ``checkIsolated()``, which names the
  /// schedulers: false would end the program with a message that does not (SE-0471).
  @available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *)
  public func isIsolatingCurrentContext() -> Bool? { isCurrent ? true : nil }
}
