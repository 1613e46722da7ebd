import Testing

@testable import Operations

/// The state machine, walked through every sequence of events.
struct OperationLifecycleTests {
  enum Event: CaseIterable {
    case start, startPreparing, evaluate, resume, execute
    case finish, finishWithError, finishWithCancellation, cancel, cancelWithError, cancelUnlessStarted, timeOut
    case record, end, settle
  }

  private func isLegal(_ event: Event, in lifecycle: OperationLifecycle) -> Bool {
    switch event {
    // Settling is the second half of ending, and done by the one who ended it.
    case .settle: lifecycle.phase == .ending
    // The one who prepares the operation takes it a step further.
    case .evaluate, .execute: lifecycle.phase == .preparing
    default: true
    }
  }

  /// What may never be taken back, and what may be granted only once, on the way to one state.
  private struct Watch: Hashable {
    var ends = 0
    var executions = 0
    var announcements = 0
    var keeps = 0
  }

  /// All that decides what can happen next: the failures only gather.
  private struct Place: Hashable {
    let phase: OperationLifecycle.Phase
    let isCancelled: Bool
    let hasExecuted: Bool
    let decision: OperationLifecycle.Decision
    let watch: Watch
  }

  @Test func everySequenceOfEventsKeepsThePromises() {
    var seen: Set<Place> = []
    var toVisit = [(OperationLifecycle(), Watch())]
    var steps = 0
    while let (lifecycle, watch) = toVisit.popLast() {
      for event in Event.allCases where isLegal(event, in: lifecycle) {
        steps += 1
        var next = lifecycle
        var watch = watch
        apply(event, to: &next, before: lifecycle, &watch)
        check(next, after: event, from: lifecycle, watch)
        let place = Place(
          phase: next.phase,
          isCancelled: next.isCancelled,
          hasExecuted: next.hasExecuted,
          decision: next.decision,
          watch: watch
        )
        if seen.insert(place).inserted { toVisit.append((next, watch)) }
      }
    }
    #expect(Set(seen.map(\.phase)).count == 7 && seen.count > 20 && steps > 200)
  }

  private func apply(
    _ event: Event,
    to next: inout OperationLifecycle,
    before: OperationLifecycle,
    _ watch: inout Watch
  ) {
    switch event {
    case .start:
      start(&next, before, preparing: false, &watch)
    case .startPreparing: start(&next, before, preparing: true, &watch)
    case .evaluate:
      let mayExecute = before.mayExecute
      #expect(next.proceed(to: .evaluating) == mayExecute)
      #expect(next.phase == (mayExecute ? .evaluating : .skipped))
    case .resume: #expect(next.resume() == (before.phase == .evaluating))
    case .execute:
      if next.proceed(to: .executing) {
        watch.executions += 1
        #expect(!before.isCancelled && watch.keeps == 0)
      } else {
        #expect(next.phase == .skipped && (before.isCancelled || watch.keeps == 1))
      }
    case .finish: finish(nil, &next, before, &watch)
    case .finishWithError: finish(FailureReport([TestError("finish")]), &next, before, &watch)
    case .finishWithCancellation: finish(FailureReport([CancellationError()]), &next, before, &watch)
    case .cancel: cancel(.none, &next, before, &watch)
    case .cancelWithError: cancel(.failure(FailureReport([TestError("cancel")])), &next, before, &watch)
    case .cancelUnlessStarted: cancel(.none, unlessStarted: true, &next, before, &watch)
    case .timeOut: cancel(.timeout(OperationError(.timedOut, "timeout")), &next, before, &watch)
    case .record:
      let failure = OperationFailure(path: ["member"], error: TestError("member"))
      let recorded = next.record(FailureReport(failures: [failure]))
      #expect(recorded == ![.ending, .finished].contains(before.phase))
      #expect(next.failures.count == before.failures.count + (recorded ? 1 : 0))
    case .end:
      if next.end() { watch.ends += 1 }
    case .settle: next.complete()
    }
  }

  private func start(
    _ next: inout OperationLifecycle,
    _ before: OperationLifecycle,
    preparing: Bool,
    _ watch: inout Watch
  ) {
    switch next.start(preparing: preparing) {
    case .execute:
      watch.executions += 1
      #expect(!preparing && before.phase == .pending && !before.isCancelled && watch.keeps == 0)
    case .prepare: #expect(preparing && before.phase == .pending && !before.isCancelled && watch.keeps == 0)
    case .skip: #expect(before.phase == .pending && (before.isCancelled || watch.keeps == 1))
    case .ignore: #expect(before.phase == .finished)
    case .refuse: #expect(![.pending, .finished].contains(before.phase))
    }
  }

  private func finish(
    _ report: FailureReport?,
    _ next: inout OperationLifecycle,
    _ before: OperationLifecycle,
    _ watch: inout Watch
  ) {
    let action = next.finish(report)
    switch action {
    case .end:
      watch.ends += 1
      #expect(before.phase == .executing)
    case .keep:
      watch.keeps += 1
      #expect([.pending, .preparing].contains(before.phase))
    case .skip: #expect(before.phase == .evaluating && next.phase == .skipped)
    case .ignore: break
    }
    let counted = (before.isCancelled ? report?.failuresAfterCancellation : report?.failures)?.count ?? 0
    #expect(next.failures.count == before.failures.count + (action == .ignore ? 0 : counted))
    #expect(next.decision == (action == .ignore || before.decision != .none ? before.decision : .finish))
  }

  private func cancel(
    _ reason: OperationLifecycle.CancelReason,
    unlessStarted: Bool = false,
    _ next: inout OperationLifecycle,
    _ before: OperationLifecycle,
    _ watch: inout Watch
  ) {
    switch next.cancel(reason, unlessStarted: unlessStarted) {
    case .announce(let whileExecuting, let skips):
      watch.announcements += 1
      #expect(whileExecuting == (before.phase == .executing))
      #expect(skips == (before.phase == .evaluating))
      #expect(!before.isCancelled)
    case .ignore: break
    }
    let isTooLate = [.ending, .finished].contains(before.phase) || (unlessStarted && before.phase == .executing)
    #expect(next.isCancelled == (before.isCancelled || !isTooLate))
    let decides = !isTooLate && before.decision == .none
    var hasReason = true
    if case .none = reason { hasReason = false }
    #expect(next.failures.count == before.failures.count + (decides && hasReason ? 1 : 0))
    var isTimeout = false
    if case .timeout = reason { isTimeout = true }
    #expect(next.decision == (decides ? (isTimeout ? .timeout : .cancellation) : before.decision))
  }

  private func check(
    _ next: OperationLifecycle,
    after event: Event,
    from previous: OperationLifecycle,
    _ watch: Watch
  ) {
    #expect(
      rank(of: next.phase) >= rank(of: previous.phase),
      "\(event) went back from \(previous.phase) to \(next.phase)"
    )
    #expect(watch.ends <= 1 && watch.executions <= 1 && watch.announcements <= 1 && watch.keeps <= 1)
    #expect((watch.ends == 1) == [.ending, .finished].contains(next.phase))
    #expect(next.hasExecuted == (watch.executions == 1))
    #expect(next.isCancelled == (watch.announcements == 1))
    if [.ending, .finished].contains(previous.phase) {
      #expect(next.failures.count == previous.failures.count, "\(event) changed the errors of an ended operation")
    }
  }

  /// An operation may go back from its conditions to its inputs, but no further.
  private func rank(of phase: OperationLifecycle.Phase) -> Int {
    switch phase {
    case .pending: 0
    case .preparing, .evaluating: 1
    case .executing, .skipped: 2
    case .ending: 3
    case .finished: 4
    }
  }
}
