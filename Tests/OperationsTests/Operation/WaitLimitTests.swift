import Foundation
import OperationsTestSupport
import Soak
import Testing

@testable import Operations

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
  private func expectExpiry(
    of operation: AsyncOperation,
    after limit: Duration = .seconds(5),
    waitingFor text: String
  ) {
    if limit > .zero {
      clock.advance(by: limit - .nanoseconds(1))
      #expect(!operation.isFinished)
      clock.advance(by: .nanoseconds(1))
    }
    #expect(operation.isFinished && operation.isCancelled && operation.state == .finished)
    let error = operation.errors.first as? OperationError
    #expect(error?.code == .expired && operation.errors.count == 1)
    let time = limit > .zero ? "within 5 seconds" : "at once"
    #expect(error?.message == "“late” was cancelled because it could not start \(time): it waited for \(text).")
    #expect(journal.entries.isEmpty)
  }

  // MARK: What it waits for

  private enum Obstacle: CaseIterable {
    case full, suspended, dependency, key, pausedKey
    case keyOfMember, fullGroup, fullGroupWithKey, suspendedGroup, newGroup, newGroupWithKey

    var isOfMember: Bool { ![.full, .suspended, .dependency, .key, .pausedKey].contains(self) }

    var text: String {
      switch self {
      case .full, .suspended: "a slot of the queue “single”"
      case .dependency: "“holder”"
      case .key, .keyOfMember: "the key “key”, held by “holder”"
      case .pausedKey: "the key “key”, which is paused for another 3 s"
      case .fullGroup, .fullGroupWithKey, .suspendedGroup: "a slot of “group”"
      case .newGroup, .newGroupWithKey: "the start of “group”"
      }
    }
  }

  @Test(arguments: Obstacle.allCases, [Duration.zero, .seconds(5)])
  private func anObstacle_endsTheOperationAtOnceAndIsNamed(_ obstacle: Obstacle, limit: Duration) async {
    let (operation, holder, group) = (late(limit), HeldOperation().named("holder"), GroupOperation("group"))
    let (events, completed, dependent) = (Journal<String>(), Gate(), AsyncOperation())
    operation.addObserver(
      didStart: { _ in events.write("started") },
      didCancel: { events.write("cancelled \($0.isFinished)") },
      didFinish: { events.write("finished \($0.isFinished)") }
    )
    operation.completionBlock = { completed.open() }
    queue.addOperation(operation ==> dependent)
    group.staysOpen = true
    switch obstacle {
    case .full:
      await single.begin(holder)
      single.addOperation(operation)
    case .suspended:
      single.isSuspended = true
      single.addOperation(operation)
    case .dependency:
      await queue.begin(holder)
      queue.addOperation(operation.waits(for: holder))
    case .key, .keyOfMember:
      await queue.begin(holder.exclusive("key", in: domain))
      operation.exclusive("key", in: domain)
      if obstacle == .key {
        queue.addOperation(operation)
      } else {
        await queue.begin(group)
        group.addOperation(operation)
      }
    case .pausedKey:
      domain.pause("key", for: limit + .seconds(3), clock: clock)
      queue.addOperation(operation.exclusive("key", in: domain))
    case .fullGroup, .fullGroupWithKey:
      group.maxConcurrentOperationCount = 1
      group.addOperation(holder)
      await queue.add(group, until: holder.begun)
      if obstacle == .fullGroupWithKey { operation.exclusive("key", in: domain) }
      group.addOperation(operation)
    case .suspendedGroup:
      group.isSuspended = true
      await queue.begin(group)
      group.addOperation(operation)
    case .newGroup: group.addOperation(operation)
    case .newGroupWithKey: group.addOperation(operation.exclusive("key", in: domain))
    }
    expectExpiry(of: operation, after: limit, waitingFor: obstacle.text)
    await #expect(throws: OperationError(.expired, "")) { try await operation.completed() }
    await dependent.finished()
    await completed.opened()
    #expect(domain.waiting(for: "key").isEmpty)
    if obstacle == .suspended { await single.finished() }
    if obstacle == .full || obstacle == .suspended {
      #expect(single.operations.contains(operation))
      #expect(single.stallReport().entries.count == (obstacle == .full ? 1 : 0))
    }
    holder.gate.open()
    clock.advance(by: .seconds(3))
    if obstacle.isOfMember {
      // A runner may be about to remove the operation from the group.
      await poll { !group.operations.contains(operation) }
      #expect(group.failures.count == 1)
      if group.state == .pending { queue.addOperation(group) }
      await group.ended()
      #expect(group.failures.map(\.path) == [["group", "late"]])
    }
    await single.drained()
    await queue.finished()
    await poll { single.operations.isEmpty && queue.operations.isEmpty && domain.isUnused }
    #expect(events.entries == ["cancelled false", "finished true"] && journal.entries.isEmpty)
  }

  @Test func aConditionIsNamed() async {
    let (begun, gate) = (Gate(), Gate())
    let operation = late()
    operation.addCondition("online") { _ in
      begun.open()
      await gate.opened()
    }
    await queue.add(operation, until: begun)
    expectExpiry(of: operation, waitingFor: "its condition “online”")
    gate.open()
  }

  @Test(arguments: [false, true]) func aGroup_finishesWithItsMembersAndThrowsOneError(isMember: Bool) async {
    let (member, outer) = (NoteOperation("member", journal), GroupOperation("outer"))
    let group = limited(GroupOperation([member]))
    single.isSuspended = true
    if isMember { outer.addOperation(group) } else { single.addOperation(group) }
    clock.advance(by: .seconds(5))
    await #expect(throws: OperationError(.expired, "")) { try await group.completed() }
    #expect(member.isFinished && journal.entries.isEmpty)
    await single.drained()
    if isMember { await queue.run(settling: [outer]) }
  }

  // MARK: Starts in time

  @Test(arguments: [nil, Duration.seconds(9)])
  func oneThatHasStarted_isNotDisturbed_andItsTimeoutBeginsWithTheExecution(timeout: Duration?) async {
    let operation = limited(HeldOperation())
    operation.timeout = timeout
    await queue.begin(operation)
    clock.advance(by: .seconds(6))
    #expect(operation.isExecuting && !operation.isCancelled)
    operation.timeout = .seconds(1)
    clock.advance(by: .seconds(1))
    #expect(operation.errors.first as? OperationError == OperationError(.timedOut, ""))
  }

  @Test(arguments: [Duration.zero, .seconds(1)])
  func anAttemptOfARetry_thatExpires_hasFailed(limit: Duration) async throws {
    let holder = await queue.holder(of: "taken", in: domain)
    // An attempt with a key runs in a private group, which has the clock of the retry.
    let retry = RetryOperation(attempts: 2) { [domain, journal] number -> AsyncOperation in
      let attempt = NoteOperation("\(number)", journal).exclusive(number == 1 ? "taken" : "free", in: domain)
      attempt.waitLimit = limit
      return attempt
    }
    retry.clock = clock
    queue.addOperation(retry)
    if limit > .zero { await clock.advance(by: limit, sleepers: 1) }
    try await retry.completed()
    #expect(retry.attemptErrors as? [OperationError] == [OperationError(.expired, "")] && journal.entries == ["2"])
    await holder.finished(opening: holder.gate)
  }

  @Test func addedAgainAfterItsGroupWasReleasedAndGivenATimeout_itWaitsItsWholeLimit() {
    let operation = late()
    withExtendedLifetime(GroupOperation([operation])) {}
    clock.advance(by: .seconds(3))
    single.isSuspended = true
    single.addOperation(operation)
    operation.timeout = .seconds(1)
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
      let (starts, ends, clock) = (Journal<Int>(), Journal<Int>(), ManualClock())
      let operations = (0..<3).map { index in
        let operation = index == 1 ? CountedGroup(live, [AsyncOperation()]) : CountedOperation(live)
        (operation.clock, operation.waitLimit) = (clock, .nanoseconds(index + 1))
        operation.addObserver(didStart: { _ in starts.write(index) }, didFinish: { _ in ends.write(index) })
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
      await group.ended()
      await poll { place.operations.isEmpty }
      let expired = operations.count { $0.errors.first as? OperationError == OperationError(.expired, "") }
      #expect(starts.count == 3 - expired && ends.count == 3)
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
      defer { group.finish() }
      let members = [late(limit), late(limit).exclusive("key", in: domain), late(limit)]
      queue.addOperation(ResultOperation { group.addOperation(members[2]) }.waits(for: members[1]))
      for member in members[..<2] {
        group.addOperation(member)
        try await member.completed()
      }
      try await members[2].completed()
    }
  }

  @Test(arguments: [true, false]) func slotsThatNoRunnerHasTaken_areTakenBackByAChange(suspending: Bool) {
    let (group, members) = (GroupOperation(), (0..<3).map { _ in AsyncOperation() })
    var schedule = GroupSchedule()
    _ = schedule.start(group, in: GroupQueue(of: group), draining: false)
    schedule.limit = 2
    for member in members { schedule.becameReady(member, .normal) }
    #expect(members.map { schedule.giveSlot(to: $0) } == [true, true, false])
    if suspending { schedule.isSuspended = true } else { schedule.limit = 1 }
    #expect(schedule.mayHandOut != suspending && schedule.ready.slotsTaken == 0 && schedule.ready.count == 3)
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
    await group.ended()
  }

  // MARK: Tasks

  private enum Waiter: CaseIterable { case keys, slot, slotOfAGroup }

  /// Waits for what an operation has taken.
  private func wait(_ waiter: Waiter, within limit: Duration) async throws {
    switch waiter {
    case .keys: try await withKeys(.exclusive("key"), in: domain, waitLimit: limit, name: "task", clock: clock) {}
    case .slot: try await single.withSlot("task", waitLimit: limit) {}
    case .slotOfAGroup:
      let group = GroupOperation("group", maxConcurrentOperationCount: 1)
      group.clock = clock
      try await group.started().withSlot("task", holding: .exclusive("key"), in: domain, waitLimit: limit) {}
      group.finish()
    }
  }

  @Test(arguments: Waiter.allCases)
  private func aTaskThatMayNotWait_triesOnceAndOthersReceiveTheReason(waiter: Waiter) async throws {
    try await wait(waiter, within: .zero)
    await poll { single.operations.isEmpty }
    let holder = await single.holder(of: "key", in: domain)
    await #expect(throws: OperationError(.expired, "")) { try await wait(waiter, within: .zero) }
    // The clock of a slot of a queue is not the test's.
    if waiter != .slot {
      let task = immediately { try await wait(waiter, within: .seconds(5)) }
      clock.advance(by: .seconds(5))
      let result = await task.result
      let reason = "it could not start within 5 seconds: it waited for the key “key”, held by “holder”."
      #expect(result.code == .expired && result.message == "“task” was cancelled because " + reason)
      #expect(domain.waiting(for: "key").isEmpty)
    }
    await single.drained(opening: [holder.gate])
    try await wait(waiter, within: .seconds(1))
    await poll { domain.isUnused && clock.sleepers == 0 }
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
