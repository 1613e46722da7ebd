import Testing

@testable import Operations

/// The lifecycle, with every order of the critical sections of threads that use it at once.
struct LifecycleInterleavingTests {
  private typealias Walk = Interleavings<LifecycleStep>

  private let others: [[LifecycleStep]] = [
    [.finish], [.finishWithError], [.cancel], [.cancelWithError], [.timeOut, .end], [.finishWithCancellation],
    [.cancelUnlessStarted], [.record], [.end],
  ]

  private static let plain: [LifecycleWorld.Kind] = [
    .init(), .init(hasObservers: true), .init(finishesInside: true), .init(hasTimeout: true),
    .init(hasObservers: true, hasTimeout: true, finishesInside: true), .init(pauses: true),
  ]

  private static let prepared: [LifecycleWorld.Kind] = [
    .init(isPrepared: true), .init(meetsConditions: true), .init(meetsConditions: false), .init(needsTurn: true),
    .init(meetsConditions: true, needsTurn: true, finishesInside: true), .init(lacksInput: true),
    .init(meetsConditions: true, lacksInput: true), .init(isPrepared: true, hasObservers: true, hasTimeout: true),
  ]

  /// Walks every one and two of the others next to a start, and of the simplest operations every three.
  private func walk(_ kinds: [LifecycleWorld.Kind]) -> Walk {
    var walk = Walk()
    for kind in kinds {
      for first in others.indices {
        walk.walk(LifecycleWorld(kind), [[.start], others[first]])
        for second in others.indices where second > first {
          walk.walk(LifecycleWorld(kind), [others[first], others[second]])
          walk.walk(LifecycleWorld(kind), [[.start], others[first], others[second]])
          for third in others.indices where kind.isSimple && third > second {
            walk.walk(LifecycleWorld(kind), [[.start], others[first], others[second], others[third]])
          }
        }
      }
    }
    return walk
  }

  @Test func callsThatCross_keepThePromises() { walk(Self.plain).expectSuccess(states: 25_000, schedules: 600_000) }

  @Test func callsThatCrossThePreparation_keepThePromises() {
    walk(Self.prepared).expectSuccess(states: 35_000, schedules: 350_000)
  }

  /// Only one of them is allowed, and the other one is refused.
  @Test func twoStartsThatCross_leadToOneExecution() {
    var walk = Walk()
    for kind in Self.plain + Self.prepared {
      walk.walk(LifecycleWorld(kind), [[.start], [.start], [.finish], [.cancel]])
    }
    walk.expectSuccess(states: 4_500, schedules: 400_000)
  }
}

/// A lifecycle, and the actions that its callers have carried out.
struct LifecycleWorld: InterleavedWorld {
  /// What comes between the start of an operation and its execution.
  struct Kind: Hashable {
    var isPrepared = false
    /// Nil if it has no conditions.
    var meetsConditions: Bool?
    /// Whether it waits for its keys when it has been started.
    var needsTurn = false
    var lacksInput = false
    var hasObservers = false
    var hasTimeout = false
    var finishesInside = false
    var pauses = false

    var isSimple: Bool { self == Self() || self == Self(isPrepared: true) }

    var isPreparing: Bool { isPrepared || meetsConditions != nil || needsTurn || lacksInput }
  }

  struct Deeds: Hashable {
    var starts = 0
    var executions = 0
    var calls = 0
    var ends = 0
    var isFinished = false
    var settlements = 0
    var announcements = 0
    /// Whether a cancellation or a finish has counted.
    var isStopped = false
    /// Whether a finish was requested, before or after the start.
    var isWantedFinished = false
    var finishes = 0
    var errorsAtEnd: Int?
    /// The first event that decides how the operation ends.
    var decision = OperationLifecycle.Decision.none
  }

  let kind: Kind
  var lifecycle = OperationLifecycle()
  var deeds = Deeds()
  var breach: String?

  init(_ kind: Kind) { self.kind = kind }

  var state: [AnyHashable] {
    [lifecycle.phase, lifecycle.failures.count, lifecycle.isCancelled, lifecycle.isFinishKept, deeds]
  }

  mutating func decide(_ decision: OperationLifecycle.Decision) {
    if deeds.decision == .none { deeds.decision = decision }
    if deeds.decision == .finish, decision != .finish { deeds.decision = .finishBeforeCancellation }
  }

  mutating func check() {
    promise(deeds.executions <= 1 && deeds.calls <= deeds.executions, "it executed twice")
    promise(deeds.ends <= 1, "two have the right to end it")
    promise(deeds.settlements <= deeds.ends, "it settled twice")
    promise(deeds.announcements <= 1, "it was cancelled twice")
    promise(deeds.finishes <= 1, "a second finish counted")
    let hasExecuted: Bool? =
      switch lifecycle.phase {
      case .executing, .paused: true
      case .ending(let isAfterExecution): isAfterExecution
      case .pending, .suspended, .preparing, .skipped: false
      case .finished: nil
      }
    promise(hasExecuted ?? (deeds.executions == 1) == (deeds.executions == 1), "it does not know whether it executed")
    promise(lifecycle.isCancelled == (deeds.announcements == 1), "a cancellation was not announced")
    promise(lifecycle.phase.isOver == (deeds.ends == 1), "it ends, and no caller has the duty")
    promise(lifecycle.decision == deeds.decision, "the first event did not decide")
    let isTimeoutFirst = lifecycle.failures.first.map { OperationError.Code.timedOut ~= $0.error } ?? false
    promise((lifecycle.decision == .timeout) == isTimeoutFirst, "a timeout is not the first failure, or too many")
    if let errors = deeds.errorsAtEnd {
      promise(errors == lifecycle.failures.count, "its errors changed after its end")
    }
  }

  var breachAtEnd: String? {
    switch lifecycle.phase {
    case .finished: deeds.isFinished && deeds.settlements == 1 ? nil : "it has not settled"
    case .pending: deeds.starts == 0 ? nil : "it never begins"
    case .executing: deeds.isWantedFinished || deeds.calls == 0 ? "it never ends" : nil
    case .suspended, .preparing, .paused, .skipped, .ending: "it stays \(lifecycle.phase) for ever"
    }
  }
}

/// What the calls of an operation consist of: each step is one critical section, or one thing done without the lock.
enum LifecycleStep: InterleavedStep {
  typealias Actor = InterleavedActor<Self>

  case start, observe, startDeadline, execute
  case prepare, prepareInputs, evaluate, adoptTask, takeTurn, pause, resume, failCondition, resumeToInputs,
    resumeToHandOver, handOver
  case finish, finishWithError, finishWithCancellation, end, superStart, settle
  case cancel, cancelWithError, cancelUnlessStarted, timeOut, didCancel, record

  func perform(in world: inout LifecycleWorld, by actor: inout Actor) {
    switch self {
    // Starting.
    case .start: start(&world, &actor)
    case .observe:
      // An observer that cancels the operation keeps it from executing.
      if world.lifecycle.canContinue { goOn(&world, &actor) } else { actor.go(on: .end) }
    case .startDeadline:
      guard world.lifecycle.phase.isExecuting else { return }
      world.deeds.isWantedFinished = true
      actor.spawn([.timeOut, .end])
      actor.go(on: .execute)
    case .execute:
      world.deeds.calls += 1
      if world.kind.pauses { actor.go(on: .pause) }
      if world.kind.finishesInside { actor.go(on: .finish) }
    case .pause: if world.lifecycle.pause() { actor.spawn([.resume]) }
    case .resume: _ = world.lifecycle.resume(after: .delay)

    // Preparing.
    case .prepare: actor.go(on: .prepareInputs)
    case .takeTurn: actor.spawn([.resumeToInputs])
    case .prepareInputs:
      actor.go(on: world.kind.meetsConditions == nil ? .handOver : .evaluate)
      if world.kind.lacksInput { actor.go(on: .cancelWithError) }
    case .evaluate:
      guard world.lifecycle.proceed(to: .suspended(.conditions)) else { return actor.go(on: .end) }
      actor.spawn(world.kind.meetsConditions == true ? [.resumeToHandOver] : [.failCondition])
      actor.go(on: .adoptTask)
    case .failCondition: if world.lifecycle.phase == .suspended(.conditions) { actor.go(on: .finishWithError) }
    case .resumeToInputs: if world.lifecycle.resume(after: .keys) { actor.go(on: .prepareInputs) }
    case .resumeToHandOver: if world.lifecycle.resume(after: .conditions) { actor.go(on: .handOver) }
    case .handOver:
      let mayExecute = world.lifecycle.mayExecute
      let executes = world.lifecycle.proceed(to: .executing)
      world.promise(executes == mayExecute, "it does not know whether it may execute")
      if executes { execute(&world, &actor) } else { actor.go(on: .end) }

    // Finishing.
    case .finish: finish(nil, &world, &actor)
    case .finishWithError: finish(FailureReport([TestError("finish")]), &world, &actor)
    case .finishWithCancellation: finish(FailureReport([CancellationError()]), &world, &actor)
    case .end:
      guard let isAfterExecution = world.lifecycle.end() else { return }
      world.promise(isAfterExecution == (world.deeds.executions == 1), "its end is not that of its execution")
      conclude(&world, &actor)
    case .superStart:
      world.promise(world.deeds.starts > 0, "it finished before it was started")
      world.promise(!world.deeds.isFinished, "it finished twice")
      world.deeds.isFinished = true
    case .settle:
      guard case .ending = world.lifecycle.phase else {
        return world.promise(false, "it settles \(world.lifecycle.phase)")
      }
      world.lifecycle.complete()
      world.deeds.settlements += 1
      world.promise(world.lifecycle.phase == .finished, "it settled, and is not finished")

    // Cancelling.
    case .cancel, .cancelUnlessStarted: cancel(nil, &world, &actor)
    case .cancelWithError: cancel(FailureReport([TestError("cancel")]), &world, &actor)
    case .timeOut: cancel(FailureReport([OperationError(.timedOut, "timeout")]), &world, &actor)
    case .adoptTask, .didCancel: break
    case .record:
      let hasEnded = world.deeds.ends == 1
      let failure = OperationFailure(path: ["member"], error: TestError("member"))
      let count = world.lifecycle.failures.count
      world.lifecycle.record(FailureReport(failures: [failure]))
      world.promise((world.lifecycle.failures.count == count) == hasEnded, "a failure was lost, or came too late")
    }
  }

  private func start(_ world: inout World, _ actor: inout Actor) {
    let wasStopped = world.deeds.isStopped
    world.deeds.starts += 1
    let first: OperationLifecycle.Phase =
      world.kind.needsTurn ? .suspended(.keys) : world.kind.isPreparing ? .preparing : .executing
    guard world.lifecycle.start(as: first) else {
      return world.promise(world.deeds.starts > 1, "its start was refused")
    }
    switch world.lifecycle.phase {
    case .executing:
      world.promise(!world.kind.isPreparing, "it executed without its inputs")
      execute(&world, &actor)
    case .preparing: actor.go(on: .prepare)
    case .suspended: actor.go(on: .takeTurn)
    case .skipped:
      world.promise(wasStopped, "it was skipped though nothing had ended it")
      actor.go(on: .end)
    case .pending, .paused, .ending, .finished: world.promise(false, "a start led to \(world.lifecycle.phase)")
    }
  }

  /// Records that the execution is granted. What follows is done without the lock.
  private func execute(_ world: inout World, _ actor: inout Actor) {
    world.deeds.executions += 1
    world.promise(!world.deeds.isStopped, "it executed after it had been ended")
    if world.kind.hasObservers { actor.go(on: .observe) } else { goOn(&world, &actor) }
  }

  private func goOn(_ world: inout World, _ actor: inout Actor) {
    actor.go(on: world.kind.hasTimeout ? .startDeadline : .execute)
  }

  private func finish(_ report: FailureReport?, _ world: inout World, _ actor: inout Actor) {
    let before = world.lifecycle
    let interruption = world.lifecycle.finish(report)
    world.deeds.isWantedFinished = true
    if interruption != nil {
      world.deeds.isStopped = true
      world.deeds.finishes += 1
      world.decide(.finish)
    }
    let counted = before.isCancelled ? report?.failuresAfterCancellation : report?.failures
    world.promise(
      world.lifecycle.failures.count == before.failures.count + (interruption == nil ? 0 : counted?.count ?? 0),
      "a finish recorded what it should not, or did not record what it should"
    )
    switch interruption {
    case .executing, .paused:
      world.promise(before.phase.isExecuting, "a finish ended what did not execute")
      conclude(&world, &actor)
    case .suspended: actor.go(on: .end)
    case .pending, .preparing, .skipped, .ending, .finished:
      world.promise(before.phase.isPending || before.phase == .preparing, "a finish was kept too late")
    case nil: break
    }
  }

  private func conclude(_ world: inout World, _ actor: inout Actor) {
    world.deeds.ends += 1
    world.deeds.errorsAtEnd = world.lifecycle.failures.count
    actor.go(on: .superStart, .settle)
  }

  private func cancel(_ reason: FailureReport?, _ world: inout World, _ actor: inout Actor) {
    let before = world.lifecycle
    let unlessStarted = self == .cancelUnlessStarted
    let decision = self == .timeOut ? OperationLifecycle.Decision.timeout : .cancellation
    let isIncluded = !unlessStarted || !before.phase.isExecuting
    let interruption = isIncluded ? world.lifecycle.cancel(reason, as: decision) : nil
    let isTooLate = before.phase.isOver || (unlessStarted && before.phase.isExecuting)
    let hasReason = self == .cancelWithError || self == .timeOut
    let counts = !isTooLate && before.decision == .none
    world.promise(
      world.lifecycle.failures.count == before.failures.count + (counts && hasReason ? 1 : 0),
      "a cancellation recorded what it should not, or did not record what it should"
    )
    if !isTooLate { world.decide(decision) }
    guard let interruption else {
      return world.promise(isTooLate || before.isCancelled, "a cancellation was ignored")
    }
    world.deeds.announcements += 1
    world.deeds.isStopped = true
    switch interruption {
    case .pending, .preparing, .skipped, .ending, .finished:
      world.promise(!before.isSuspended && !before.phase.isExecuting, "a cancellation interrupted nothing")
    case .suspended:
      world.promise(before.isSuspended, "it was skipped while it was not suspended")
      actor.go(on: .end)
    case .executing, .paused:
      world.promise(before.phase.isExecuting, "it was told to stop what it did not do")
      actor.go(on: .didCancel)
    }
  }
}

extension OperationLifecycle {
  fileprivate var isSuspended: Bool { if case .suspended = phase { true } else { false } }
}
