import Foundation

/// How time comes into an operation's life.
extension AsyncOperation {
  /// How long the operation may execute. Nil, the default, is as long as it likes.
  ///
  /// When the time is over the operation is cancelled, with ``OperationError/Code/timedOut``, and finished, though the
  /// work may go on: the point of a timeout is to free the queue. What the work does later, `finish` included, changes
  /// nothing. A group that times out winds its members down as one that is cancelled, but does not wait for them.
  ///
  /// The time begins with the execution, of a group with that of its first member: waiting, conditions included, does
  /// not count. Set while the operation executes, it begins at that moment, instead of what was set before. An
  /// operation that has no time from the start does not execute.
  public final var timeout: Duration? {
    get { core.withLock { $0.extras?.timeout } }
    set {
      let (isExecuting, deadline) = core.withLock { core in
        let extras = core.makeExtras()
        extras.timeout = newValue
        return (core.lifecycle.phase == .executing, extras.exchange(\.deadline, nil))
      }
      deadline?.cancel()
      if isExecuting { startDeadline() }
    }
  }

  /// What measures the operation's time: its timeout, its delays and its pauses.
  ///
  /// Unless it is set, that of the group around the operation, or around that one; a `ContinuousClock` if there is
  /// none. A test sets one that it moves by hand. A change does not concern what has begun to be measured.
  public final var clock: any Clock<Duration> {
    get {
      var operation = self
      while true {
        let (clock, supervisor) = operation.core.withLock { ($0.extras?.clock, $0.supervisor) }
        if let clock { return clock }
        guard let outer = supervisor?.supervisedGroup else { return ContinuousClock() }
        operation = outer
      }
    }
    set {
      let old = core.withLock { $0.makeExtras().exchange(\.clock, newValue) }
      withExtendedLifetime(old) {}
    }
  }

  // MARK: The deadline

  /// The time begins now, unless the operation has been ended.
  ///
  /// - Returns: Whether it has not.
  @discardableResult
  func startDeadline() -> Bool {
    guard let timeout = core.withLock({ $0.extras?.timeout }) else { return isExecuting }
    let timer = ClockTimer.start(after: timeout, on: clock) { [weak self] in self?.timeOut(after: timeout) }
    let (isExecuting, superfluous) = core.withLock { core -> (Bool, ClockTimer?) in
      guard core.lifecycle.phase == .executing else { return (false, timer) }
      let extras = core.makeExtras()
      // It may have been set anew since.
      return (true, extras.timeout == timeout ? extras.exchange(\.deadline, timer) : timer)
    }
    superfluous?.cancel()
    return isExecuting
  }

  private func timeOut(after timeout: Duration) {
    cancel(.timeout(timeoutError(timeout)))
    endIfNotEnded()
  }

  func timeoutError(_ timeout: Duration) -> OperationError {
    let executing = self is GroupOperation ? members.filter(\.isExecuting) : []
    return OperationError(
      .timedOut,
      "\(quotedName) was cancelled because it took longer than \(timeout)."
        + (executing.isEmpty ? "" : " Still executing: \(executing.quotedNames).")
    )
  }

  // MARK: Pauses

  /// Gives the slot of the operation's group back for a while; goes on with `work`, with a slot, when it is over.
  ///
  /// The operation is executing all the time, and may be ended meanwhile. If it has been cancelled there is no pause.
  /// One that has keys keeps its slot, too: in it somebody might wait for the keys, and it would wait for the slot.
  ///
  /// - Parameter next: What begins after the pause, for a stall report.
  func pause(for duration: Duration, before next: String, then work: @escaping @Sendable () -> Void) {
    let place = keepPlace()
    let remaining = clock.remaining(of: duration)
    let (pause, starter) = core.withLock { core -> (OperationPause?, OperationStarter?) in
      guard core.lifecycle.mayGoOn else { return (nil, nil) }
      let pause = OperationPause(
        keepingSlot: core.extras?.permit != nil,
        at: place,
        before: next,
        remaining: remaining,
        resume: work
      )
      core.makeExtras().pause = pause
      return (pause, core.starter)
    }
    guard let pause else { return work() }
    if !pause.keepsSlot { starter?.memberDidPause() }
    let timer = ClockTimer.start(after: duration, on: clock) { self.end(pause) }
    let isSuperfluous = core.withLock { core in
      if core.extras?.pause !== pause || pause.isOver { return true }
      pause.timer = timer
      return false
    }
    if isSuperfluous { timer.cancel() }
  }

  private func end(_ pause: OperationPause) {
    let (isResumed, supervisor) = core.withLock { core -> (Bool, OperationSupervisor?) in
      guard core.lifecycle.phase == .executing, core.extras?.pause === pause, !pause.isOver else { return (false, nil) }
      pause.isOver = true
      if !pause.keepsSlot, let supervisor = core.supervisor { return (false, supervisor) }
      core.extras?.pause = nil
      return (true, nil)
    }
    if let supervisor { supervisor.memberIsReady(self) }
    if isResumed { pause.place.run(pause.resume) }
  }
}

extension Clock where Duration == Swift.Duration {
  /// Returns a closure that says how much of a duration that begins now is left.
  fileprivate func remaining(of duration: Duration) -> @Sendable () -> Duration {
    let start = now
    return { duration - start.duration(to: now) }
  }
}
