import Testing

@testable import Operations

/// The state machine, walked through every sequence of events.
struct OperationLifecycleTests {
  enum Event: CaseIterable {
    case start, finish, finishWithError, cancel, cancelWithError, record, end, settle
  }

  private func isLegal(_ event: Event, in lifecycle: OperationLifecycle) -> Bool {
    // Settling is the second half of ending, and done by the one who ended it.
    event != .settle || lifecycle.phase == .ending
  }

  /// What may never be taken back, and what may be granted only once, over one sequence.
  private struct Watch {
    var ends = 0
    var executions = 0
    var announcements = 0
    var keeps = 0
  }

  @Test func everySequenceOfEventsUpToLengthSixKeepsThePromises() {
    var sequences = 0
    func walk(_ lifecycle: OperationLifecycle, _ watch: Watch, depth: Int) {
      guard depth < 6 else { return }
      for event in Event.allCases where isLegal(event, in: lifecycle) {
        sequences += 1
        var next = lifecycle
        var watch = watch
        apply(event, to: &next, before: lifecycle, &watch)
        check(next, after: event, from: lifecycle, watch)
        walk(next, watch, depth: depth + 1)
      }
    }
    walk(OperationLifecycle(), Watch(), depth: 0)
    #expect(sequences > 50_000)
  }

  private func apply(
    _ event: Event,
    to next: inout OperationLifecycle,
    before: OperationLifecycle,
    _ watch: inout Watch
  ) {
    switch event {
    case .start:
      switch next.start() {
      case .execute:
        watch.executions += 1
        #expect(before.phase == .pending && !before.isCancelled && watch.keeps == 0)
      case .skip: #expect(before.phase == .pending && (before.isCancelled || watch.keeps == 1))
      case .ignore: #expect(before.phase == .finished)
      case .refuse: #expect([.executing, .skipped, .ending].contains(before.phase))
      }
    case .finish: finish([], &next, before, &watch)
    case .finishWithError: finish([TestError("finish")], &next, before, &watch)
    case .cancel: cancel(nil, &next, before, &watch)
    case .cancelWithError: cancel(TestError("cancel"), &next, before, &watch)
    case .record:
      let recorded = next.record([OperationFailure(path: ["member"], error: TestError("member"))])
      #expect(recorded == ![.ending, .finished].contains(before.phase))
      #expect(next.failures.count == before.failures.count + (recorded ? 1 : 0))
    case .end:
      if next.end() { watch.ends += 1 }
    case .settle: next.settle()
    }
  }

  private func finish(
    _ errors: [any Error],
    _ next: inout OperationLifecycle,
    _ before: OperationLifecycle,
    _ watch: inout Watch
  ) {
    let action = next.finish(errors)
    switch action {
    case .end:
      watch.ends += 1
      #expect(before.phase == .executing)
    case .keep:
      watch.keeps += 1
      #expect(before.phase == .pending)
    case .ignore: break
    }
    #expect(next.failures.count == before.failures.count + (action == .ignore ? 0 : errors.count))
  }

  private func cancel(
    _ error: (any Error)?,
    _ next: inout OperationLifecycle,
    _ before: OperationLifecycle,
    _ watch: inout Watch
  ) {
    switch next.cancel(error) {
    case .announce(let whileExecuting):
      watch.announcements += 1
      #expect(whileExecuting == (before.phase == .executing))
      #expect(!before.isCancelled)
    case .ignore: break
    }
    let isTooLate = [.ending, .finished].contains(before.phase)
    #expect(next.isCancelled == (before.isCancelled || !isTooLate))
    #expect(next.failures.count == before.failures.count + (isTooLate || error == nil ? 0 : 1))
  }

  private func check(
    _ next: OperationLifecycle,
    after event: Event,
    from previous: OperationLifecycle,
    _ watch: Watch
  ) {
    let order: [OperationLifecycle.Phase] = [.pending, .executing, .skipped, .ending, .finished]
    let (before, after) = (order.firstIndex(of: previous.phase)!, order.firstIndex(of: next.phase)!)
    #expect(after >= before, "\(event) went back from \(previous.phase) to \(next.phase)")
    #expect(watch.ends <= 1 && watch.executions <= 1 && watch.announcements <= 1 && watch.keeps <= 1)
    #expect((watch.ends == 1) == [.ending, .finished].contains(next.phase))
    #expect(next.hasExecuted == (watch.executions == 1))
    #expect(next.isCancelled == (watch.announcements == 1))
    if [.ending, .finished].contains(previous.phase) {
      #expect(next.failures.count == previous.failures.count, "\(event) changed the errors of an ended operation")
    }
  }
}
