import Foundation

extension AsyncOperation {
  /// Starts or resumes an operation in no queue that holds its keys. Returns false if it must wait again, or has ended.
  func startOrResume(by runner: GroupRunner?, number: Int? = nil, hasSlot: Bool = true) -> Bool {
    let action = core.withLock { $0.start(by: runner, number: number, hasSlot: hasSlot) }
    if case .ignore = action { return false }
    continueStart(action)
    return true
  }

  /// Handles a start by hand while dependencies are counted, and returns whether the operation was started. Otherwise
  /// the count is now zero, and the caller must start it again.
  func startUnready() -> Bool {
    let keys = core.withLock { $0.lifecycle.phase == .pending(.keys) ? $0.keys : nil }
    let unfinished = dependencies.filter { !$0.isFinished }
    if unfinished.isEmpty, keys == nil {
      // The dependencies have finished, but the last of them has not notified this operation yet. A thread that waited
      // for them with `waitUntilFinished` can get here first.
      continueWait(core.withLock { $0.countDown(by: $0.ledger.remaining) })
      return false
    }
    // A queue may start an operation that has just gained a dependency. Foundation runs it, and so does this method.
    guard OperationQueue.current?.operations.contains(where: { $0 === self }) == true else {
      if unfinished.isEmpty, let keys {
        misuse("\(quotedName) is not ready: it waits for \(keys.goal). Leave it to its queue, which starts it then.")
      }
      misuse(
        "\(quotedName) is not ready: it waits for \(unfinished.quotedNames). Add it to a queue, which starts it when they "
          + "have finished, or start it after them."
      )
    }
    continueStart(core.withLock { $0.start() })
    return true
  }

  func continueStart(_ action: OperationCore.StartAction) {
    switch action {
    case .execute(let observers, let hasTimeout, let trace): beginExecution(observers, hasTimeout: hasTimeout, trace)
    case .prepare: prepareInputs()
    case .takeKeys(let keys): take(keys)
    case .resume(let pause): pause.resume()
    case .skip: finishUnexecuted()
    case .leaveQueue:
      // The thread that ended the operation has called it.
      super.completionBlock = nil
      super.start()
    case .ignore: break
    case .refuse: misuse("\(quotedName) has been started before. An operation runs once: make a new one.")
    case .isMember:
      misuse("\(quotedName) is a member of a group, which starts it. Start the group, or add it to a queue.")
    }
  }

  // MARK: Preparing

  /// Takes the keys of an operation that stays started while it waits for them.
  private func take(_ keys: KeyRequest) {
    if !keys.takeIfCalled() {
      // Not before it must wait, because finding the place out takes long.
      keepPlace()
      guard keys.take() else {
        noteKeyWait()
        if let limit = waitLimit, limit <= .zero { expire(after: limit) }
        return
      }
    }
    if core.withLock({ $0.lifecycle.resume(after: .keys) }) { prepareInputs() }
  }

  func prepareInputs() {
    let (conditions, handOvers, timeout) = core.withLock { core in
      (core.extras?.conditions ?? [], core.extras?.handOvers.entries ?? [], core.extras?.spentTimeout)
    }
    if let timeout { cancel(FailureReport([timeoutError(timeout)]), as: .timeout) }
    for input in handOvers {
      guard let cause = input.obstacle(input.producer) else { continue }
      cancel(with: OperationError.inputUnavailable(to: self, from: input.producer, because: cause))
      break
    }
    if conditions.isEmpty { return transferInputsAndExecute() }
    let isSuspended = core.withLock { core in
      core.makeExtras().condition = conditions.first?.name
      return core.proceed(to: .suspended(.conditions))
    }
    guard isSuspended else { return finishUnexecuted() }
    evaluate(conditions)
  }

  private func evaluate(_ conditions: [OperationCondition]) {
    let place = keepPlace()
    let context = core.withLock { $0.extras?.context.take() }
    startTask(in: context, while: .suspended(.conditions)) { [self] in
      for condition in conditions {
        core.withLock { $0.makeExtras().condition = condition.name }
        do { try await condition.evaluate(self) } catch {
          let failure = condition.failure(of: self, because: error)
          releaseTask()
          // Has no effect if the operation has been ended, because only this task resumes it.
          finish(reporting: FailureReport([failure]))
          return
        }
        if core.withLock({ $0.lifecycle.phase != .suspended(.conditions) }) { return }
      }
      releaseTask()
      place.run {
        if self.core.withLock({ $0.lifecycle.resume(after: .conditions) }) { self.transferInputsAndExecute() }
      }
    }
  }

  /// Starts a task for work of the operation. Without a context, it has no task-local values of the current task.
  ///
  /// - Parameter priority: The least priority, or 0 for that of the place of the operation.
  func startTask(
    priority: UInt8 = 0,
    in context: TaskContext?,
    while phase: OperationLifecycle.Phase,
    _ body: @escaping @concurrent @Sendable () async -> Void
  ) {
    let work = ownWork
    let (outer, runner, lent) = core.withLock { ($0.outer, $0.runner, $0.lent) }
    let least = priority > 0 ? priority : startPriority(by: runner, inside: outer)
    let priority = TaskPriority(rawValue: max(least, lent))
    if let context {
      context.run {
        $currentWork.withValue(work) { _ = adopt(Task(priority: priority, operation: body), while: phase) }
      }
    } else {
      adopt(.detached(priority: priority) { await $currentWork.withValue(work, operation: body) }, while: phase)
    }
  }

  /// Calls a closure of the user on this thread, in the task of the context, which is cancelled with the operation.
  final func call(in context: TaskContext, _ body: () -> Void) {
    if !adopt(context.task, while: .executing) { context.task.cancel() }
    let ownWork = ownWork
    context.run { $currentWork.withValue(ownWork) { Trampoline.callUserCode(body) } }
    releaseTask()
  }

  /// As the other method. Without a context, the current task has the task-local values.
  final func call<Value>(in context: TaskContext?, _ body: () -> Value) -> Value {
    guard let context else { return body() }
    var value: Value?
    call(in: context) { value = body() }
    return value!  // The context traps if it cannot call the closure.
  }

  /// The priority of a task of this operation, which the thread that starts the operation creates.
  private func startPriority(by runner: GroupRunner?, inside outer: AsyncOperation?) -> UInt8 {
    // Any thread may start a member or an attempt.
    if let quality = runner?.queue.quality(of: self) ?? outer?.keepPlace().quality {
      return quality.taskPriority.rawValue
    }
    let priority = Task.currentPriority.rawValue
    return priority == 0 ? TaskPriority.medium.rawValue : priority
  }

  /// The runner that started the operation, if it is a member, or the one in which it runs, which is no group.
  final var enclosingRunner: GroupRunner? {
    var operation = self
    while true {
      let (runner, outer) = operation.core.withLock { ($0.runner, $0.isInside ? $0.outer : nil) }
      guard let outer else { return runner }
      operation = outer
    }
  }

  /// Whether the operation, which is a member, only begins work elsewhere, so that it needs no thread of its group.
  final var startsAnywhere: Bool { beginsElsewhere && core.withLock { $0.callsNoCodeAtStart } }

  private func transferInputsAndExecute() {
    transferInputs()
    continueStart(core.withLock { $0.execute() })
  }

  /// Releases the hand-overs, but no last reference to a producer, because the ledger still holds them.
  private func transferInputs() {
    for handOver in core.withLock({ $0.extras?.handOvers.takeAll() ?? [] }) {
      // An earlier hand-over may have ended the operation.
      if core.withLock({ !$0.lifecycle.mayExecute }) { return }
      handOver.transfer(handOver.producer, self)
    }
  }

  /// The first call must be on the thread that started the operation. The place is kept until the end, because
  /// `OperationQueue.current` may be nil when the operation continues.
  @discardableResult
  final func keepPlace() -> ExecutionPlace {
    if let place = core.withLock({ $0.extras?.place }) { return place }
    let place =
      enclosingRunner.map { ExecutionPlace(quality: $0.queue.quality(of: self), queue: $0) }
      ?? ExecutionPlace.current(quality: qualityOfService)
    core.withLock { core in
      if !core.lifecycle.phase.isOver { core.makeExtras().place = place }
    }
    return place
  }

  // MARK: Executing

  private func beginExecution(_ observers: [OperationObserver], hasTimeout: Bool, _ trace: [OperationFollower]) {
    for follower in trace { follower.noteStart() }
    if observers.contains(where: { $0.didStart != nil }), !notifyOfStart(observers) {
      willNotExecute()
      return finishUnexecuted()
    }
    // An observer may have set another timeout. The time of a group begins when its first member starts.
    if hasTimeout, !(self is GroupOperation), !startDeadline() { return willNotExecute() }
    execute()
    for follower in trace { follower.noteReturn() }
  }

  /// Returns whether the operation may execute. An observer may have cancelled or finished it.
  private func notifyOfStart(_ observers: [OperationObserver]) -> Bool {
    let engine = engineOfMembers
    let wasFinishRequested = engine?.isFinishRequested
    var mayExecute: Bool {
      core.withLock { $0.lifecycle.canContinue } && engine?.isFinishRequested == wasFinishRequested
    }
    Trampoline.callUserCode { for observer in observers where mayExecute { observer.didStart?(self) } }
    return mayExecute
  }

  func releaseTask() { _ = core.withLock { $0.task.take() } }

  /// Makes and stores a task, which is cancelled when the operation is cancelled or ends. Returns false if the operation
  /// is not in `phase`. Holds the lock meanwhile, so that the end knows of each task that has begun, and of its work.
  @discardableResult
  func adopt(_ make: @autoclosure () -> Task<Void, Never>, while phase: OperationLifecycle.Phase) -> Bool {
    typealias Adoption = (task: Task<Void, Never>, former: Task<Void, Never>?, isCancelled: Bool, lent: UInt8)
    let adoption = core.withLock { core -> Adoption? in
      guard core.lifecycle.phase == phase else { return nil }
      let task = make()
      return (task, exchange(&core.task, with: task), core.lifecycle.isCancelled, core.lent)
    }
    guard let adoption else { return false }
    if adoption.isCancelled { adoption.task.cancel() }
    if adoption.lent > 0 { adoption.task.raisePriority(to: TaskPriority(rawValue: adoption.lent)) }
    return true
  }
}
