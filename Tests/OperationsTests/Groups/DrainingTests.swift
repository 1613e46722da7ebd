import Foundation
import Operations
import OperationsTestSupport
import Soak
import Testing

/// Returns work that begins, and that no cancellation ends before a gate is opened.
func stubbornWork<T: Sendable>(
  asTask: Bool,
  _ begun: Gate,
  until gate: Gate,
  _ body: @escaping @Sendable () throws -> T
) -> ResultOperation<T> {
  if asTask {
    return TaskOperation<T> {
      begun.open()
      // Unlike `opened()`, this wait does not end with the cancellation.
      await withCheckedContinuation { continuation in gate.whenOpen { continuation.resume() } }
      return try body()
    }
  }
  return ResultOperation<T> {
    begun.open()
    gate.pass()
    return try body()
  }
}

/// Waiting until no member executes, and cancelling the members that have not started.
@Suite(.timeLimit(.minutes(5)))
struct DrainingTests: NotingSuite {
  private let queue = OperationQueue()
  let journal = Journal<String>()

  /// Starts to wait for the members, and reports whether something is true when the wait ends.
  private func drain(
    _ group: GroupOperation,
    _ isTrue: @autoclosure @escaping @Sendable () -> Bool
  ) -> Task<Bool, any Error> {
    immediately {
      await group.drained()
      return isTrue()
    }
  }

  private func finishEarly(_ group: GroupOperation, _ held: HeldOperation, byTimeout: Bool) async {
    let clock = ManualClock()
    if byTimeout { (group.clock, group.timeout) = (clock, .seconds(1)) } else { group.finishesWhenCancelled = true }
    await queue.add(group, until: held.begun)
    if byTimeout { await clock.advance(by: .seconds(1), sleepers: 1) } else { group.cancel() }
    #expect(group.isFinished && !held.isFinished)
  }

  // MARK: Drained

  @Test(arguments: [true, false])
  func aGroupThatFinishedEarly_isDrainedAfterItsLastMember(byTimeout: Bool) async throws {
    let held = [HeldOperation(), HeldOperation()]
    let group = GroupOperation(held + [note("never")], maxConcurrentOperationCount: 2)
    let before = drain(group, held[1].isFinished)
    await finishEarly(group, held[0], byTimeout: byTimeout)
    let after = drain(group, held[1].isFinished)
    await held[0].finished(opening: held[0].gate)
    held[1].gate.open()
    let finished = try await (before.value, after.value)
    #expect(finished == (true, true) && journal.entries.isEmpty)
    await group.drained()
  }

  @Test func aBlockThatContinuesAfterItsEnd_isAwaited() async throws {
    let (begun, end) = (Gate(), Gate())
    let block = AsyncBlockOperation { [journal] operation in
      operation.finish()
      begun.open()
      end.pass()
      journal.write("end")
    }
    let group = await queue.add(GroupOperation([block]), until: begun)
    await group.finished()
    #expect(try await drain(group, journal.entries == ["end"]).value(opening: end))
  }

  @Test func aGroupThatFinishesDuringAnAddition_isReleasedWhileAMemberExecutes() async {
    let held = HeldOperation()
    weak var released: GroupOperation?
    do {
      let (group, probe) = (GroupOperation([held]), PriorityProbe())
      released = group
      group.finishesWhenCancelled = true
      await queue.add(group, until: held.begun)
      probe.whenRead { [unowned group, unowned probe] in if group.operations.contains(probe) { group.cancel() } }
      group.addGraph(endingIn: probe)
      #expect(group.isFinished && probe.isCancelled)
    }
    await poll { released == nil }
    #expect(!held.isFinished)
    await held.finished(opening: held.gate)
  }

  @Test(arguments: [true, false])
  func cancelledBeforeItsStart_isDrained(isEmpty: Bool) async throws {
    let (member, inner) = (note("member"), note("inner"))
    let group = GroupOperation(isEmpty ? [] : [member, GroupOperation([inner])])
    inner.addObserver(didFinish: { [journal] _ in if group.isFinished { journal.write("before its members") } })
    group.cancel()
    let wait = drain(group, group.isFinished)
    queue.addOperation(group)
    #expect(try await wait.value && journal.entries.isEmpty)
    #expect([member, inner].allSatisfy { isEmpty || ($0.isFinished && $0.isCancelled) })
  }

  @Test(arguments: [true, false])
  func theWaitHoldsAGroupThatHasNoOtherReference(byTimeout: Bool) async throws {
    let (held, only) = (HeldOperation(), Locked<GroupOperation?>(nil))
    do {
      let group = GroupOperation([held])
      await finishEarly(group, held, byTimeout: byTimeout)
      only.withLock { $0 = group }
    }
    let wait = immediately {
      await only.withLock { $0.take() }?.drained()
      return held.isFinished
    }
    #expect(try await wait.value(opening: held.gate))
  }

  @Test(arguments: ["task", "closure", "nested", "attempt"])
  func theWaitIncludesTheWorkOfAMemberThatTimedOut(_ kind: String) async throws {
    let (begun, gate, isOver, clock) = (Gate(), Gate(), Gate(), ManualClock())
    let work = stubbornWork(asTask: kind != "closure", begun, until: gate) { isOver.open() }
    work.finishesWhenCancelled = true
    let member: AsyncOperation =
      switch kind {
      case "nested": GroupOperation([GroupOperation([work])])
      case "attempt": RetryOperation(attempts: 1) { _ in work }
      default: work
      }
    (kind == "attempt" ? member : work).timeout = .seconds(1)
    let group = GroupOperation([member])
    group.clock = clock
    await queue.add(group, until: begun)
    await clock.advance(by: .seconds(1), sleepers: 1)
    await group.finished()
    let wait = drain(group, isOver.isOpen)
    #expect(!isOver.isOpen)
    #expect(try await wait.value(opening: gate))
  }

  /// The group around the work ends before it, and is released unless it is kept.
  @Test(arguments: ["member", "nested", "deep", "retry", "inner retry", "attempt", "repeat", "flatMap", "expiry"])
  func theWaitIncludesTheWorkOfAGroupThatEndedEarly(_ shape: String) async throws {
    for (byTimeout, isKept) in [(true, false), (true, true), (false, false), (false, true)] {
      let (begun, gate, clock, running, live) = (Gate(), Gate(), ManualClock(), Locked(0), LiveCount())
      let (steps, late) = (Locked<[GroupOperation]>([]), note("late"))
      let step: @Sendable () -> GroupOperation = {
        let work = stubbornWork(asTask: true, begun, until: gate) { running.withLock { $0 -= 1 } }
        work.addObserver(didStart: { _ in running.withLock { $0 += 1 } })
        let step = CountedGroup(live, [work])
        step.finishesWhenCancelled = true
        if byTimeout { step.timeout = .seconds(1) }
        steps.withLock { $0.append(step) }
        return step
      }
      (late.clock, late.waitLimit) = (clock, .seconds(1))
      let member: AsyncOperation =
        switch shape {
        case "nested": GroupOperation([step()])
        case "deep": GroupOperation([GroupOperation([GroupOperation([step()])])])
        case "retry": RetryOperation(attempts: 3) { _ in GroupOperation([step()]) }
        case "inner retry": RetryOperation(attempts: 3) { _ in RetryOperation(attempts: 1) { _ in step() } }
        case "attempt": RetryOperation(attempts: 3) { _ in step() }
        case "repeat": RepeatOperation { $0 <= 3 ? GroupOperation([step()]) : nil }
        case "flatMap": GroupOperation { ResultOperation {}.flatMap { GroupOperation([step()]) } }
        case "expiry": GroupOperation([step(), late], maxConcurrentOperationCount: 1)
        default: step()
        }
      let group = GroupOperation([member])
      group.clock = clock
      await queue.add(group, until: begun)
      let wait = drain(group, running.withLock { $0 } == 0)
      if byTimeout {
        await clock.advance(by: .seconds(1), sleepers: shape == "expiry" ? 2 : 1)
      } else {
        steps.withLock { $0.first }?.cancel()
      }
      if !isKept { steps.withLock { $0 = [] } }
      // The test holds the member, and a retry its latest attempt.
      if !isKept, shape != "member", shape != "attempt" { await poll { live.alive == 0 } }
      #expect(try await wait.value(opening: gate))
      #expect(member.isFinished && group.isFinished && journal.entries.allSatisfy { $0 == "late" })
    }
  }

  // MARK: Cancelling what waits

  @Test func whatWaitsIsCancelled_whatExecutesContinues() async {
    let (held, notes) = (HeldOperation(), ["a", "b", "dependent", "cancelled"].map { note($0) })
    let plains = ["ready", "dependent"].map { plain($0, journal) }
    held ==> [notes[2], plains[1]]
    let group = GroupOperation([held] + notes + plains + [GroupOperation([note("inner")])])
    (group.maxConcurrentOperationCount, group.staysOpen) = (1, true)
    await queue.add(group, until: held.begun)
    notes[3].cancel()
    #expect(group.cancelWaitingOperations() == 6)
    #expect(group.cancelWaitingOperations() == 0)
    for operation in notes + [plains[0], plains[1]] { await operation.finished() }
    #expect(held.isExecuting && !held.isCancelled)
    held.gate.open()
    await group.waitForRoom(below: 1)
    #expect(group.isExecuting)
    group.addOperation(note("next"))
    await group.ended()
    #expect(journal.entries == ["next"] && held.isSuccessful && group.isSuccessful)
  }

  @Test func whatWaitsInsideExecutingMembersIsCancelled_andBackOffsEnd() async {
    let (held, clock) = (HeldOperation(), ManualClock())
    let retry = RetryOperation(attempts: 9, backoff: .constant(.seconds(60))) { _ in
      TaskOperation<Void> { throw TestError("attempt") }
    }
    let inner = GroupOperation("inner") { held ==> note("behind") }
    let attempt = RetryOperation(attempts: 2) { _ in inner }
    let group = GroupOperation([retry, attempt, note("last").waits(for: held)])
    group.clock = clock
    await queue.add(group, until: held.begun)
    await clock.waitForSleepers()
    #expect(group.cancelWaitingOperations() == 3)
    await group.finished(opening: held.gate)
    #expect(retry.failedAttempts == 1 && retry.isCancelled && group.isSuccessful && group.failures.isEmpty)
    #expect(held.isSuccessful && attempt.isSuccessful && journal.entries.isEmpty)
  }

  @Test func queue_cancelsWhatHasNotStarted() async {
    queue.maxConcurrentOperationCount = 1
    let held = await queue.holding()
    let (waiting, other, cancelled) = (note("a"), plain("b", journal), note("c"))
    held ==> cancelled
    queue.addOperations([waiting, other, cancelled])
    cancelled.cancel()
    #expect(queue.cancelWaitingOperations() == 2)
    #expect(queue.cancelWaitingOperations() == 0)
    #expect(waiting.isCancelled && other.isCancelled && held.isExecuting && !held.isCancelled)
    held.gate.open()
    await queue.finished()
    #expect(journal.entries.isEmpty && held.isSuccessful)
  }

  /// Cancelling the first one lets the third one execute, unless that is cancelled as well by then.
  @Test(arguments: [("all", true), ("named", true), ("waiting", true), ("named", false), ("waiting", false)])
  func cancellingSeveral_isOneStep(form: String, inAGroup: Bool) async {
    let (held, third) = (HeldOperation(), HeldOperation().named("x"))
    let (first, second) = (note("x"), note("x"))
    held ==> [first, second]
    first ==> third
    second.addObserver(didCancel: { _ in while !third.isCancelled, !third.begun.isOpen { sched_yield() } })
    let operations: [AsyncOperation] = [held, first, second, third]
    let group = GroupOperation(inAGroup ? operations : [])
    queue.addOperations(inAGroup ? [group] : operations)
    await held.begun.opened()
    _ = await onThread {
      switch form {
      case "all": group.cancelAllOperations()
      case "named": #expect((inAGroup ? group.cancelOperations(named: "x") : queue.cancelOperations(named: "x")) == 3)
      default: #expect((inAGroup ? group.cancelWaitingOperations() : queue.cancelWaitingOperations()) == 3)
      }
    }
    for gate in [held.gate, third.gate] { gate.open() }
    for operation in operations { await operation.finished() }
    #expect(!third.begun.isOpen && journal.entries.isEmpty)
    #expect(!group.isCancelled && held.isCancelled == (form == "all"))
  }

  /// A member of the second nested group waits for one of the first.
  @Test func cancellingAGroup_isOneStepAtAnyDepth() async {
    let (executing, other, next) = (HeldOperation(), HeldOperation(), HeldOperation())
    for operation in [executing, other] { operation.finishesWhenCancelled = true }
    executing ==> next
    other.addObserver(didCancel: { _ in while !next.isCancelled, !next.begun.isOpen { sched_yield() } })
    let group = GroupOperation([GroupOperation([executing]), GroupOperation([other, next])])
    await queue.add(group, until: executing.begun)
    await other.begun.opened()
    _ = await onThread { group.cancel() }
    await group.finished()
    #expect(next.isCancelled && !next.begun.isOpen)
  }

  @Test func theQueueOfAScheduler_countsNoEvents() async {
    let scheduler = SerialScheduler(name: "feed")
    scheduler.isSuspended = true
    scheduler.schedule { journal.write("event") }
    #expect(scheduler.queue.cancelWaitingOperations() == 0)
    #expect(scheduler.queue.cancelOperations(named: "events of feed") == 0)
    scheduler.isSuspended = false
    await scheduler.drained()
    #expect(journal.entries == ["event"])
  }
}
