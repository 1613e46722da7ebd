import Foundation
import OperationsTestSupport
import Soak
import Testing

@testable import Operations

/// Operations and tasks that wait for their start for a limited time only.
@Suite(.timeLimit(.minutes(5)))
struct WaitLimitTests {
  private let domain = ExclusivityDomain()
  private let queue = OperationQueue()
  private let single = OperationQueue.named("single", limit: 1)
  private let clock = ManualClock()
  private let journal = Journal<String>()

  private func limited<O: AsyncOperation>(_ operation: O, to limit: Duration = .seconds(5)) -> O {
    operation.clock = clock
    operation.waitLimit = limit
    return operation.named("late")
  }

  private func late(_ limit: Duration = .seconds(5)) -> NoteOperation {
    limited(NoteOperation("late", journal), to: limit)
  }

  /// Lets the time pass, after which the operation has finished.
  private func expectExpiry(of operation: AsyncOperation, waitingFor text: String) {
    clock.advance(by: .seconds(5) - .nanoseconds(1))
    #expect(!operation.isFinished)
    clock.advance(by: .nanoseconds(1))
    #expect(operation.isFinished && operation.isCancelled && operation.state == .finished)
    let error = operation.errors.first as? OperationError
    #expect(error?.code == .expired && operation.errors.count == 1)
    let message = "“late” was cancelled because it could not start within 5 seconds: it waited for \(text)."
    #expect(error?.message == message)
    #expect(journal.entries.isEmpty)
  }

  // MARK: What it waits for

  @Test(arguments: [false, true]) func inAQueueThatIsFullOrSuspended_itFinishesAtOnce(isSuspended: Bool) async throws {
    let (events, held) = (Journal<String>(), HeldOperation())
    if isSuspended { single.isSuspended = true } else { await single.add(held, until: held.begun) }
    let (operation, dependent) = (late(), AsyncOperation())
    operation.addObserver(
      OperationObserver(
        didStart: { _ in events.write("started") },
        didCancel: { events.write("cancelled \($0.isFinished)") },
        didFinish: { events.write("finished \($0.isFinished)") }
      )
    )
    let completed = Gate()
    operation.completionBlock = { completed.open() }
    operation ==> dependent
    queue.addOperation(dependent)
    let run = immediately { try await single.run(operation) }
    expectExpiry(of: operation, waitingFor: "a slot of the queue “single”")
    await #expect(throws: OperationError(.expired, "")) { try await run.value }
    try await dependent.completed()
    await completed.opened()
    #expect(events.entries == ["cancelled false", "finished true"])
    if isSuspended { await single.finished() }
    #expect(
      single.operations.contains { $0 === operation } && single.stallReport().entries.count == (isSuspended ? 0 : 1)
    )
    await single.drained(opening: [held.gate])
    await poll { single.operations.isEmpty }
    #expect(events.count == 2 && journal.entries.isEmpty)
  }

  @Test func aDependencyIsNamed() async {
    let held = await queue.holding("first")
    let operation = late()
    held ==> operation
    queue.addOperation(operation)
    expectExpiry(of: operation, waitingFor: "“first”")
    held.gate.open()
    await queue.finished()
    await poll { queue.operations.isEmpty }
  }

  @Test(arguments: [false, true]) func aKeyAndItsHolderAreNamed_andTheWaitQueueIsLeft(isMember: Bool) async {
    let holder = HeldOperation().named("holder").exclusive("key", in: domain)
    await queue.add(holder, until: holder.begun)
    let operation = late().exclusive("key", in: domain)
    let group = GroupOperation("group").started()
    if isMember { group.addOperation(operation) } else { queue.addOperation(operation) }
    expectExpiry(of: operation, waitingFor: "the key “key”, held by “holder”")
    #expect(domain.waiting(for: "key").isEmpty)
    await holder.finished(opening: holder.gate)
    group.finish()
  }

  @Test func aPausedKeyIsNamed() {
    domain.pause("key", for: .seconds(8), clock: clock)
    let operation = late().exclusive("key", in: domain)
    queue.addOperation(operation)
    expectExpiry(of: operation, waitingFor: "the key “key”, which is paused for another 3 s")
    clock.advance(by: .seconds(3))
  }

  @Test func aConditionIsNamed() async {
    let (begun, gate) = (Gate(), Gate())
    let operation = late()
    operation.addCondition(
      OperationCondition(name: "online") { _ in
        begun.open()
        await gate.opened()
      }
    )
    await queue.add(operation, until: begun)
    expectExpiry(of: operation, waitingFor: "its condition “online”")
    gate.open()
  }

  private enum Obstacle: CaseIterable { case full, suspended, notStarted, notStartedWithKeys, keysAndFull }

  @Test(arguments: Obstacle.allCases) private func aMember_finishesAtOnce(obstacle: Obstacle) async {
    let (held, group) = (HeldOperation(), GroupOperation("group", maxConcurrentOperationCount: 1))
    let operation = late()
    if obstacle == .notStartedWithKeys || obstacle == .keysAndFull { operation.exclusive("key", in: domain) }
    group.staysOpen = true
    switch obstacle {
    case .full, .keysAndFull:
      group.addOperation(held)
      await queue.add(group, until: held.begun)
    case .suspended:
      group.isSuspended = true
      await queue.begin(group)
    case .notStarted, .notStartedWithKeys: break
    }
    group.addOperation(operation)
    let isStarted = obstacle != .notStarted && obstacle != .notStartedWithKeys
    expectExpiry(of: operation, waitingFor: isStarted ? "a slot of “group”" : "the start of “group”")
    // A runner may be about to remove the operation from the group.
    await poll { group.operations == (isStarted && obstacle != .suspended ? [held] : []) }
    #expect(group.failures.count == 1)
    if !isStarted { queue.addOperation(group) }
    held.gate.open()
    group.isSuspended = false
    group.finish()
    await group.finished()
    #expect(group.failures.map(\.path) == [["group", "late"]] && domain.isUnused)
  }

  @Test(arguments: [false, true]) func aGroup_finishesWithItsMembersAndThrowsOneError(isMember: Bool) async {
    let member = NoteOperation("member", journal)
    let group = limited(GroupOperation([member]))
    let outer = GroupOperation("outer")
    single.isSuspended = true
    if isMember { outer.addOperation(group) } else { single.addOperation(group) }
    clock.advance(by: .seconds(5))
    await #expect(throws: OperationError(.expired, "")) { try await group.completed() }
    #expect(member.isFinished && journal.entries.isEmpty)
    await single.drained()
    if isMember { await queue.run(settling: [outer]) }
  }

  // MARK: Starts in time

  @Test func oneThatHasStarted_isNotDisturbed() async throws {
    let operation = limited(HeldOperation())
    operation.timeout = .seconds(9)
    await queue.add(operation, until: operation.begun)
    await clock.waitForSleepers(1)
    clock.advance(by: .seconds(5))
    #expect(operation.isExecuting && !operation.isCancelled)
    operation.gate.open()
    try await operation.completed()
    await poll { clock.sleepers == 0 }
  }

  @Test func theTimeout_beginsWithTheExecution() async {
    let operation = limited(HeldOperation())
    await queue.add(operation, until: operation.begun)
    clock.advance(by: .seconds(6))
    operation.timeout = .seconds(1)
    clock.advance(by: .seconds(1))
    #expect(operation.errors.first as? OperationError == OperationError(.timedOut, ""))
  }

  @Test func aTimeoutThatIsSetMeanwhile_keepsTheLimit() {
    single.isSuspended = true
    let operation = late()
    single.addOperation(operation)
    operation.timeout = .seconds(1)
    expectExpiry(of: operation, waitingFor: "a slot of the queue “single”")
    single.isSuspended = false
  }

  @Test func anAttemptOfARetry_thatExpires_hasFailed() async throws {
    let holder = HeldOperation().exclusive("key", in: domain)
    await queue.add(holder, until: holder.begun)
    let retry = RetryOperation(attempts: 2) { [domain, clock] attempt -> AsyncOperation in
      let inner = AsyncOperation()
      (inner.clock, inner.waitLimit) = (clock, .seconds(1))
      return attempt == 1 ? inner.exclusive("key", in: domain) : inner
    }
    queue.addOperation(retry)
    await clock.advance(by: .seconds(1), sleepers: 1)
    try await retry.completed()
    holder.gate.open()
  }

  /// An attempt with a dependency runs in a private group, which has the clock of the retry.
  @Test func anAttemptInAPrivateGroup_isMeasuredByTheClockOfTheRetry() async {
    let (held, clock) = (await queue.holding("first"), clock)
    let retry = RetryOperation(attempts: 1) { _ in
      let attempt = AsyncOperation().waits(for: held)
      attempt.waitLimit = .seconds(5)
      return attempt
    }
    retry.clock = clock
    queue.addOperation(retry)
    await clock.advance(by: .seconds(5), sleepers: 1)
    await retry.finished()
    #expect((retry.errors.first as? OperationError)?.code == .expired)
    await held.finished(opening: held.gate)
  }

  @Test func addedAgainAfterItsGroupWasReleased_itWaitsItsWholeLimit() {
    let operation = late()
    withExtendedLifetime(GroupOperation([operation])) {}
    clock.advance(by: .seconds(3))
    single.isSuspended = true
    single.addOperation(operation)
    expectExpiry(of: operation, waitingFor: "a slot of the queue “single”")
    single.isSuspended = false
  }

  /// Either the start or the limit comes first, and the queue is empty at the end.
  @Test(arguments: [false, true]) func startsThatCrossTheLimit_loseNothing(inAGroup: Bool) async {
    let live = LiveCount()
    for round in 0..<(isThorough ? 20_000 : 300) {
      let (place, group) = (OperationQueue.limited(to: 1), GroupOperation(maxConcurrentOperationCount: 1))
      (place.isSuspended, group.isSuspended, group.staysOpen) = (true, true, true)
      queue.addOperation(group)
      let (starts, ends, clock) = (Locked(0), Locked(0), ManualClock())
      let operations = (0..<3).map { index in
        let operation = index == 1 ? CountedGroup(live, [AsyncOperation()]) : CountedOperation(live)
        (operation.clock, operation.waitLimit) = (clock, .nanoseconds(index + 1))
        operation.addObserver(
          OperationObserver(
            didStart: { _ in starts.withLock { $0 += 1 } },
            didFinish: { _ in ends.withLock { $0 += 1 } }
          )
        )
        return operation
      }
      if inAGroup { group.addOperations(operations) } else { place.addOperations(operations) }
      await onThreads(2) { thread in
        if thread == round % 2 {
          clock.advance(by: .nanoseconds(5))
        } else {
          (place.isSuspended, group.isSuspended) = (false, false)
        }
      }
      for operation in operations { await operation.finished() }
      group.staysOpen = false
      await group.finished()
      await poll { place.operations.isEmpty }
      let expired = operations.count { $0.errors.first as? OperationError == OperationError(.expired, "") }
      #expect(starts.withLock { $0 } == 3 - expired && ends.withLock { $0 } == 3)
      #expect(operations.allSatisfy { $0.isFinished && ($0.isCancelled || $0.isSuccessful) })
    }
    await live.none()
  }

  // MARK: Without waiting

  @Test(arguments: [Duration.zero, .seconds(-1)]) func aFreePlace_isTakenAtOnce(limit: Duration) async throws {
    for _ in 0..<200 {
      try await single.run(late(limit))
      try await queue.run(late(limit).exclusive("key", in: domain))
      let group = GroupOperation("group", maxConcurrentOperationCount: 1).started()
      let members = [late(limit), late(limit).exclusive("key", in: domain)]
      for member in members {
        group.addOperation(member)
        try await member.completed()
        await group.waitForRoom(below: 1)
      }
      group.finish()
    }
    #expect(journal.count == 800)
  }

  private enum Place: CaseIterable {
    case full, suspended, fullGroup, suspendedGroup, newGroup, key, keyOfMember, dependency
  }

  @Test(arguments: Place.allCases) private func noFreePlace_refusesAtOnce(place: Place) async {
    let (held, group) = (HeldOperation().exclusive("key", in: domain), GroupOperation("group"))
    let operation = late(.zero)
    group.staysOpen = true
    switch place {
    case .full, .suspended: await single.add(held, until: held.begun)
    default: await queue.add(held, until: held.begun)
    }
    switch place {
    case .full: single.addOperation(operation)
    case .suspended:
      single.maxConcurrentOperationCount = 2
      single.isSuspended = true
      single.addOperation(operation)
    case .fullGroup:
      let other = HeldOperation()
      group.maxConcurrentOperationCount = 1
      group.addOperation(other)
      await queue.add(group, until: other.begun)
      group.addOperation(operation)
      other.gate.open()
    case .suspendedGroup:
      group.isSuspended = true
      await queue.begin(group)
      group.addOperation(operation)
    case .newGroup: group.addOperation(operation)
    case .key: queue.addOperation(operation.exclusive("key", in: domain))
    case .keyOfMember:
      await queue.begin(group)
      group.addOperation(operation.exclusive("key", in: domain))
    case .dependency:
      held ==> operation
      queue.addOperation(operation)
    }
    #expect(operation.isFinished && operation.errors as? [OperationError] == [OperationError(.expired, "")])
    let message = (operation.errors.first as? OperationError)?.message
    #expect(message?.hasPrefix("“late” was cancelled because it could not start at once: it waited for ") == true)
    held.gate.open()
    group.cancel()
    await single.drained()
    await queue.finished()
    #expect(journal.entries.isEmpty)
  }

  /// An attempt with a key runs in a private group, which starts when it has its members.
  @Test(arguments: [false, true]) func anAttempt_isRefusedOnlyIfItsKeyIsTaken(isTaken: Bool) async {
    let held = HeldOperation().exclusive("key", in: domain)
    if isTaken { await queue.add(held, until: held.begun) }
    let retry = RetryOperation(attempts: 1) { [domain, journal] _ in
      let attempt = NoteOperation("attempt", journal).exclusive("key", in: domain)
      attempt.waitLimit = .zero
      return attempt
    }
    await queue.run(settling: [retry])
    #expect(retry.errors as? [OperationError] == (isTaken ? [OperationError(.expired, "")] : []))
    #expect(journal.entries == (isTaken ? [] : ["attempt"]))
    await queue.drained(opening: [held.gate])
  }

  @Test func aMemberWhoseFlowIsNext_isNotRefused() async {
    for _ in 0..<20 {
      let group = GroupOperation(maxConcurrentOperationCount: 2).started()
      let operations = (["a", "a", "b"] as [ExclusivityKey]).map { flow in
        let operation = HeldOperation()
        operation.flow = flow
        return operation
      }
      operations[2].waitLimit = .zero
      group.addOperations(operations)
      for index in [0, 2] { await operations[index].begun.opened() }
      group.finish()
      for operation in operations { operation.gate.open() }
      await group.finished()
    }
  }

  @Test func ofSeveralThatAreAddedAtOnce_asManyStartAsThereAreSlots() async {
    let (pair, group) = (OperationQueue.limited(to: 2), GroupOperation(maxConcurrentOperationCount: 2).started())
    let operations = (0..<6).map { _ in HeldOperation() }
    for operation in operations { operation.waitLimit = .zero }
    pair.addOperations(operations[..<3].map(\.self))
    group.addOperations(operations[3...].map(\.self))
    for index in [0, 1, 3, 4] { await operations[index].begun.opened() }
    #expect(operations.map(\.isFinished) == [false, false, true, false, false, true])
    await pair.drained(opening: operations.map(\.gate))
    group.finish()
    await group.finished()
  }

  // MARK: Tasks

  private enum Waiter: CaseIterable { case keys, slot, slotOfAGroup }

  /// Waits for what an operation has taken.
  private func wait(_ waiter: Waiter, within limit: Duration, for key: ExclusivityKey = "key") async throws {
    switch waiter {
    case .keys: try await withKeys(.exclusive(key), in: domain, waitLimit: limit, name: "task", clock: clock) {}
    case .slot: try await single.withSlot("task", waitLimit: limit) {}
    case .slotOfAGroup:
      let group = GroupOperation("group", maxConcurrentOperationCount: 1)
      group.clock = clock
      try await group.started().withSlot("task", holding: .exclusive(key), in: domain, waitLimit: limit) {}
      group.finish()
    }
  }

  @Test(arguments: [Waiter.keys, .slotOfAGroup]) private func aTask_receivesTheReason(waiter: Waiter) async throws {
    let holder = HeldOperation().named("holder").exclusive("key", in: domain)
    await queue.add(holder, until: holder.begun)
    let task = immediately { try await wait(waiter, within: .seconds(5)) }
    clock.advance(by: .seconds(5))
    let result = await task.result
    #expect(result.code == .expired)
    let reason = "it could not start within 5 seconds: it waited for the key “key”, held by “holder”."
    #expect(result.message == "“task” was cancelled because " + reason)
    #expect(domain.waiting(for: "key").isEmpty)
    await holder.finished(opening: holder.gate)
    await poll { domain.isUnused }
  }

  @Test(arguments: Waiter.allCases) private func aTaskThatMayNotWait_triesOnce(waiter: Waiter) async throws {
    try await wait(waiter, within: .zero)
    await poll { single.operations.isEmpty }
    let holder = HeldOperation().exclusive("key", in: domain)
    await single.add(holder, until: holder.begun)
    await #expect(throws: OperationError(.expired, "")) { try await wait(waiter, within: .zero) }
    await single.drained(opening: [holder.gate])
    try await wait(waiter, within: .seconds(1))
    #expect(domain.isUnused && clock.sleepers == 0)
  }

  @Test func grantsThatCrossTheLimit_leaveNothingBehind() async {
    for _ in 0..<(isThorough ? 20_000 : 300) {
      let (clock, gate, begun) = (ManualClock(), Gate(), Gate())
      let holder = Task {
        try await withKeys(.exclusive("key"), in: domain) {
          begun.open()
          await gate.opened()
        }
      }
      await begun.opened()
      let waiter = immediately {
        try await withKeys(.exclusive("key"), in: domain, waitLimit: .seconds(1), clock: clock) {}
      }
      await onThreads(2) { thread in if thread == 0 { clock.advance(by: .seconds(1)) } else { gate.open() } }
      let code = await waiter.result.code
      #expect(code == nil || code == .expired)
      _ = await holder.result
    }
    #expect(domain.isUnused)
  }
}
