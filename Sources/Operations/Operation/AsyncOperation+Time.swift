import Foundation

extension AsyncOperation {
  /// The longest time that the operation may execute. Nil, the default, sets no limit.
  ///
  /// When the time is over, the operation is cancelled with ``OperationError/Code/timedOut`` and finished, which frees
  /// its slot in the queue. The work may continue, but its later calls to `finish` have no effect. A group that times
  /// out cancels and drains its members, and finishes without waiting for them.
  ///
  /// The time starts when the operation executes. Waiting and the evaluation of conditions do not count. The time of a
  /// group starts with its first member. If no member can start yet, it starts with the group, and includes the time
  /// that members wait, for example for their keys. A timeout set while the operation executes replaces the previous one
  /// and starts at that moment. An operation that starts with a timeout of zero or less does not execute.
  public final var timeout: Duration? {
    get { core.withLock { $0.extras?.timeout } }
    set {
      let isExecuting = core.withLock { core in
        core.makeExtras().timeout = newValue
        return core.lifecycle.phase.isExecuting
      }
      if isExecuting { startDeadline() }
    }
  }

  /// The longest time from the arrival in a queue or a group to the execution. Nil, the default, sets no limit.
  ///
  /// When the time is over, the operation is cancelled and finishes at once, even in a queue or group that is full or
  /// suspended. Its error has the code ``OperationError/Code/expired``, and names what the operation waited for. With a
  /// limit of zero, the operation expires unless it can start at once: it waits for no dependency, no key and no slot.
  ///
  /// Set the limit before the operation is added. Foundation's own methods, which also add an operation with the static
  /// type `Operation`, ignore the limit in a queue. An expired operation remains in the `operations` of an
  /// `OperationQueue` until the queue can start it. Until then, `waitUntilFinished()` blocks, and plain Foundation
  /// operations that depend on the operation wait.
  public final var waitLimit: Duration? {
    get { core.withLock { $0.extras?.waitLimit } }
    set { core.withLock { $0.makeExtras().waitLimit = newValue } }
  }

  /// The clock that measures the operation's timeout, wait limit, delays and pauses.
  ///
  /// The default is the clock of the nearest enclosing group that has one, and otherwise a `ContinuousClock`. A test
  /// can set a clock that it advances by hand. Setting a clock does not affect timers that have already started, nor
  /// members that their group has already started.
  public final var clock: any Clock<Duration> {
    get { assignedClock ?? ContinuousClock() }
    set { _ = core.withLock { exchange(&$0.makeExtras().clock, with: newValue) } }
  }

  /// The clock that was set for the operation or the nearest group around it.
  final var assignedClock: (any Clock<Duration>)? {
    var operation = self
    while true {
      let (clock, runner, outer) = operation.core.withLock {
        ($0.extras?.clock, $0.runner, $0.runner == nil ? $0.outer : nil)
      }
      // A search in each of n nested groups would take n² steps.
      guard clock == nil, runner == nil, let outer else { return clock ?? runner?.clock }
      operation = outer
    }
  }

  // MARK: The wait limit

  /// In a queue, the operations that start at once are read only if the operation may not wait.
  func startWaitLimit(withSlots: () -> Set<ObjectIdentifier>? = { nil }) {
    guard let limit = waitLimit else { return }
    let timer = ClockTimer()
    let former = core.withLock { core in
      core.lifecycle.phase.isBeforeExecution ? exchange(&core.makeExtras().deadline, with: timer) : timer
    }
    // That of a group which released the operation before it started.
    former?.cancel()
    if limit > .zero {
      timer.start(after: limit, on: clock, isTimeout: true) { [weak self] in self?.expire(after: limit) }
    } else if !isAboutToStart(withSlots) {
      expire(after: limit)
    }
  }

  func expire(after limit: Duration) {
    if core.withLock({ !$0.lifecycle.phase.isBeforeExecution }) { return }
    let error = OperationError.expired(quotedName, after: limit, waitingFor: awaited)
    guard cancel(FailureReport([error]), as: .timeout, where: \.isBeforeExecution) else { return }
    let (endsEarly, engine) = core.withLock { ($0.beginEarlyEnd(), $0.engine) }
    if endsEarly { return finishUnexecuted() }
    if let engine, let group = engine.owner {
      _ = startOrResume(by: GroupRunner(for: engine, in: GroupQueue(of: group), clock: nil), hasSlot: false)
    }
  }

  private func isAboutToStart(_ withSlots: () -> Set<ObjectIdentifier>?) -> Bool {
    let outer = core.withLock { $0.outer }
    // A private group starts its members when it has them all, and this is asked again.
    if outer?.core.withLock({ $0.isInside && $0.lifecycle.phase.isPending }) == true { return true }
    let (phase, engine, keys) = core.withLock { ($0.lifecycle.phase, $0.engine, $0.keys) }
    switch phase {
    case .pending(.slot):
      return engine?.isAboutToStart(self, keys) ?? withSlots()?.contains(ObjectIdentifier(self)) ?? true
    case .pending: return false
    // If its keys have been taken meanwhile, the thread that starts it ends it.
    case .suspended, .preparing, .executing, .paused, .skipped, .ending, .finished: return true
    }
  }

  /// What the operation waits for, as it appears in a sentence.
  private var awaited: String {
    let outer = core.withLock { $0.outer }
    switch shownPhase.wait {
    case .groupStart: return "the start of \(outer?.quotedName ?? "its group")"
    case .dependencies: return unfinishedDependencies.quotedNames
    case .keys: return core.withLock { $0.keys }?.awaited ?? "its keys"
    case .conditions: return "its condition “\(core.withLock { $0.extras?.condition } ?? "")”"
    case .slot, .delay, nil:
      if let outer, outer.state == .pending { return "the start of \(outer.quotedName)" }
      let queueName = core.withLock { $0.queue }?.givenName.map { "the queue “\($0)”" }
      return "a slot of \(outer?.quotedName ?? queueName ?? "its queue")"
    }
  }

  // MARK: The deadline

  /// Starts the timer of the timeout, instead of the last timer. Returns whether the operation, which has had a timeout, is
  /// executing.
  @discardableResult
  func startDeadline() -> Bool {
    let timer = ClockTimer()
    let (isExecuting, timeout, previous) = core.withLock { core -> (Bool, Duration?, ClockTimer?) in
      guard core.lifecycle.phase.isExecuting, let extras = core.extras else { return (false, nil, nil) }
      return (true, extras.timeout, exchange(&extras.deadline, with: extras.timeout == nil ? nil : timer))
    }
    previous?.cancel()
    if let timeout {
      timer.start(after: timeout, on: clock, isTimeout: true) { [weak self] in
        guard let self else { return }
        cancel(FailureReport([timeoutError(timeout)]), as: .timeout)
        finishBeforeMembers()
      }
    }
    return isExecuting
  }

  func timeoutError(_ timeout: Duration) -> OperationError {
    let executing = self is GroupOperation ? members.filter(\.isExecuting) : []
    return OperationError(
      .timedOut,
      "\(quotedName) was cancelled because it took longer than \(timeout.text)."
        + (executing.isEmpty ? "" : " Still executing: \(executing.quotedNames).")
    )
  }

  // MARK: Pauses

  /// Releases the keys and the slot of a group for `duration`, then takes them again and continues with `work`, named
  /// `next`, which may need no slot. A cancelled operation does not pause.
  func pause(
    for duration: Duration,
    before next: String,
    needsSlot: Bool = true,
    then work: @escaping @Sendable () -> Void
  ) {
    keepPlace()
    let time = ElapsedTime(clock)
    let pause = OperationPause(before: next, remaining: { duration - time.now }, resume: work)
    let (isPaused, membership, keys) = core.withLock {
      core -> (Bool, OperationCore.Membership?, KeyRequest?) in
      guard core.lifecycle.pause() else { return (false, nil, nil) }
      core.makeExtras().pause = pause
      return (true, core.membership, core.keys)
    }
    if !isPaused { return work() }
    if let keys { leaveKeys(keys, forGood: false) } else { membership?.runner?.engine.releaseSlot(of: self) }
    if duration <= .zero { return changeWait { $0.delayIsOver() } }
    pause.timer.start(after: duration, on: clock) {
      if needsSlot { self.changeWait { $0.delayIsOver() } } else { work() }
    }
  }
}

extension OperationQueue {
  /// The operations that have slots, or come first among those that need one. Nil if there is no limit.
  var operationsWithSlots: Set<ObjectIdentifier>? {
    var free = isSuspended ? 0 : maxConcurrentOperationCount
    if free < 0 { return nil }
    let first = operations.prefix { operation in
      if free == 0 { return false }
      let isReady = (operation as? AsyncOperation)?.isReadyForFoundation ?? operation.isReady
      if isReady, !operation.isFinished { free -= 1 }
      return true
    }
    return Set(first.map { ObjectIdentifier($0) })
  }
}

extension OperationError {
  static func expired(_ name: String, after limit: Duration, waitingFor awaited: String) -> Self {
    let time = limit > .zero ? "within \(limit.text)" : "at once"
    return Self(.expired, "\(name) was cancelled because it could not start \(time): it waited for \(awaited).")
  }
}
