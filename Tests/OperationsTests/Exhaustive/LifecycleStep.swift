@testable import Operations

/// What the calls of an operation consist of: each step is one critical section, or one thing done without the lock.
enum LifecycleStep: InterleavedStep {
  case start, observe, startDeadline, execute
  case prepare, prepareInputs, evaluate, adoptTask, readmit, failCondition, resumeToInputs, resumeToHandOver, handOver
  case finish, finishWithError, finishWithCancellation, end
  case superStart, settle
  case cancel, cancelWithError, cancelUnlessStarted, timeOut, didCancel, record

  func perform(in world: inout LifecycleWorld, by actor: inout InterleavedActor<Self>) {
    switch self {
    case .start, .observe, .startDeadline, .execute: begin(&world, &actor)
    case .prepare, .prepareInputs, .evaluate, .adoptTask, .readmit, .failCondition, .resumeToInputs, .resumeToHandOver,
      .handOver:
      prepare(&world, &actor)
    case .finish, .finishWithError, .finishWithCancellation, .end, .superStart, .settle: finish(&world, &actor)
    case .cancel: cancel(.none, &world, &actor)
    case .cancelWithError: cancel(.failure(FailureReport([TestError("cancel")])), &world, &actor)
    case .cancelUnlessStarted: cancel(.none, &world, &actor)
    case .timeOut: cancel(.timeout(OperationError(.timedOut, "timeout")), &world, &actor)
    case .didCancel: break
    case .record:
      let hasEnded = world.deeds.ends == 1
      let failure = OperationFailure(path: ["member"], error: TestError("member"))
      let isRecorded = world.lifecycle.record(FailureReport(failures: [failure]))
      world.promise(isRecorded != hasEnded, "a failure was lost, or came too late")
    }
    world.check()
  }

  // MARK: Starting

  private func begin(_ world: inout LifecycleWorld, _ actor: inout InterleavedActor<Self>) {
    switch self {
    case .start:
      let wasStopped = world.deeds.isStopped
      world.deeds.starts += 1
      switch world.lifecycle.start(preparing: world.kind.isPreparing) {
      case .execute:
        world.promise(!world.kind.isPreparing, "it executed without its inputs")
        execute(&world, &actor)
      case .prepare: actor.go(on: .prepare)
      case .skip:
        world.promise(wasStopped, "it was skipped though nobody had ended it")
        actor.go(on: .end)
      case .ignore: world.promise(world.lifecycle.phase == .finished, "a start was ignored")
      case .refuse: world.promise(world.deeds.starts > 1, "its start was refused")
      }
    case .observe:
      // An observer that cancels the operation keeps it from executing.
      guard world.lifecycle.canContinue else { return actor.go(on: .end) }
      goOn(&world, &actor)
    case .startDeadline:
      guard world.lifecycle.phase == .executing else { return }
      world.deeds.isWantedFinished = true
      actor.spawn([.timeOut, .end])
      actor.go(on: .execute)
    default:
      world.deeds.calls += 1
      if world.kind.finishesInside { actor.go(on: .finish) }
    }
  }

  /// It is granted. What follows is done without the lock.
  private func execute(_ world: inout LifecycleWorld, _ actor: inout InterleavedActor<Self>) {
    world.deeds.executions += 1
    world.promise(!world.deeds.isStopped, "it executed after it had been ended")
    if world.kind.hasObservers { actor.go(on: .observe) } else { goOn(&world, &actor) }
  }

  private func goOn(_ world: inout LifecycleWorld, _ actor: inout InterleavedActor<Self>) {
    actor.go(on: world.kind.hasTimeout ? .startDeadline : .execute)
  }

  // MARK: Preparing

  private func prepare(_ world: inout LifecycleWorld, _ actor: inout InterleavedActor<Self>) {
    switch self {
    case .prepare: actor.go(on: world.kind.isAdmittedAgain ? .readmit : .prepareInputs)
    case .readmit:
      guard world.lifecycle.proceed(to: .evaluating) else { return actor.go(on: .end) }
      actor.spawn([.resumeToInputs])
    case .prepareInputs:
      actor.go(on: world.kind.meetsConditions == nil ? .handOver : .evaluate)
      if world.kind.lacksInput { actor.go(on: .cancelWithError) }
    case .evaluate:
      guard world.lifecycle.proceed(to: .evaluating) else { return actor.go(on: .end) }
      actor.spawn(world.kind.meetsConditions == true ? [.resumeToHandOver] : [.failCondition])
      actor.go(on: .adoptTask)
    case .failCondition:
      if world.lifecycle.phase == .evaluating { actor.go(on: .finishWithError) }
    case .resumeToInputs: if world.lifecycle.resume() { actor.go(on: .prepareInputs) }
    case .resumeToHandOver: if world.lifecycle.resume() { actor.go(on: .handOver) }
    case .handOver:
      let mayExecute = world.lifecycle.mayExecute
      let executes = world.lifecycle.proceed(to: .executing)
      world.promise(executes == mayExecute, "it does not know whether it may execute")
      if executes { execute(&world, &actor) } else { actor.go(on: .end) }
    default: break
    }
  }

  // MARK: Finishing

  private func finish(_ world: inout LifecycleWorld, _ actor: inout InterleavedActor<Self>) {
    switch self {
    case .finish: finish(nil, &world, &actor)
    case .finishWithError: finish(FailureReport([TestError("finish")]), &world, &actor)
    case .finishWithCancellation: finish(FailureReport([CancellationError()]), &world, &actor)
    case .end:
      if world.lifecycle.end() { conclude(&world, &actor) }
    case .superStart:
      world.promise(world.deeds.starts > 0, "it finished before it was started")
      world.promise(!world.deeds.isFinished, "it finished twice")
      world.deeds.isFinished = true
    default:
      guard world.lifecycle.phase == .ending else { return world.promise(false, "it settles \(world.lifecycle.phase)") }
      world.lifecycle.complete()
      world.deeds.settlements += 1
      world.promise(world.lifecycle.phase == .finished, "it settled, and is not finished")
    }
  }

  private func finish(
    _ report: FailureReport?,
    _ world: inout LifecycleWorld,
    _ actor: inout InterleavedActor<Self>
  ) {
    let before = world.lifecycle
    let action = world.lifecycle.finish(report)
    world.deeds.isWantedFinished = true
    if action != .ignore {
      world.deeds.isStopped = true
      world.deeds.finishes += 1
      world.decide(.finish)
    }
    let counted = before.isCancelled ? report?.failuresAfterCancellation : report?.failures
    world.promise(
      world.lifecycle.failures.count == before.failures.count + (action == .ignore ? 0 : counted?.count ?? 0),
      "a finish recorded what it should not, or did not record what it should"
    )
    switch action {
    case .end:
      world.promise(before.phase == .executing, "a finish ended what did not execute")
      conclude(&world, &actor)
    case .skip: actor.go(on: .end)
    case .keep: world.promise(before.phase == .pending || before.phase == .preparing, "a finish was kept too late")
    case .ignore: break
    }
  }

  private func conclude(_ world: inout LifecycleWorld, _ actor: inout InterleavedActor<Self>) {
    world.deeds.ends += 1
    world.deeds.errorsAtEnd = world.lifecycle.failures.count
    actor.go(on: .superStart, .settle)
  }

  // MARK: Cancelling

  private func cancel(
    _ reason: OperationLifecycle.CancelReason,
    _ world: inout LifecycleWorld,
    _ actor: inout InterleavedActor<Self>
  ) {
    let before = world.lifecycle
    let unlessStarted = self == .cancelUnlessStarted
    let action = world.lifecycle.cancel(reason, unlessStarted: unlessStarted)
    let isTooLate =
      before.phase == .ending || before.phase == .finished || (unlessStarted && before.phase == .executing)
    var hasReason = true
    if case .none = reason { hasReason = false }
    let counts = !isTooLate && before.decision == .none
    world.promise(
      world.lifecycle.failures.count == before.failures.count + (counts && hasReason ? 1 : 0),
      "a cancellation recorded what it should not, or did not record what it should"
    )
    if !isTooLate {
      if case .timeout = reason { world.decide(.timeout) } else { world.decide(.cancellation) }
    }
    guard case .announce(let whileExecuting, let skips) = action else {
      return world.promise(isTooLate || before.isCancelled, "a cancellation was ignored")
    }
    world.deeds.announcements += 1
    world.deeds.isStopped = true
    world.promise(whileExecuting == (before.phase == .executing), "it was told to stop what it did not do")
    if skips { actor.go(on: .end) }
    if whileExecuting { actor.go(on: .didCancel) }
  }
}
