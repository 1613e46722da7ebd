import Foundation
import OperationsTestSupport
import Testing

@testable import Operations

@Suite(.timeLimit(.minutes(5)))
struct KeyLimitTests {
  private let domain = ExclusivityDomain()
  private let queue = OperationQueue()
  private let clock = ManualClock()
  private let journal = Journal<String>()

  private func held(_ name: String, to limit: Int = 10, weight: Int = 1) -> HeldOperation {
    HeldOperation().named(name).limited("api", to: limit, weight: weight, in: domain)
  }

  // MARK: Limits

  @Test(arguments: [false, true]) func aLimitCountsFromNowOn(areMembers: Bool) async {
    let operations = (0..<5).map { held("\($0)") }
    domain.setLimit(2, for: "api")
    let group = GroupOperation("group").started()
    if areMembers { group.addOperations(operations) } else { queue.addOperations(operations) }
    for operation in operations[..<2] { await operation.begun.opened() }
    #expect(domain.holders(of: "api") == ["0", "1"] && domain.waiting(for: "api") == ["2", "3", "4"])
    domain.setLimit(3, for: "api")
    await operations[2].begun.opened()
    domain.setLimit(0, for: "api")
    for operation in operations[..<3] { await operation.finished(opening: operation.gate) }
    #expect(domain.holders(of: "api").isEmpty && domain.waiting(for: "api") == ["3", "4"])
    domain.setLimit(nil, for: "api")
    for operation in operations[3...] { await operation.finished(opening: operation.gate) }
    #expect(domain.isUnused)
    group.finish()
  }

  @Test func aLimitOutlivesTheUseOfTheKey_andConcernsOneKeyOfOneDomain() async throws {
    domain.setLimit(1, for: "api")
    try await withKeys(.shared("api"), in: domain) {
      try await withKeys(.shared("other"), in: domain, waitLimit: .zero) {}
      try await withKeys(.shared("api"), in: ExclusivityDomain(), waitLimit: .zero) {}
      // A detached task does not inherit the keys.
      let other = Task.detached { [domain] in try await withKeys(.shared("api"), in: domain, waitLimit: .zero) {} }
      #expect(await other.result.code == .expired)
    }
    #expect(domain.isUnused)
  }

  @Test func whatAHolderRuns_isNotLimited() async throws {
    let (domain, queue) = (domain, queue)
    try await withKeys(.limited("api", to: 2), in: domain) {
      domain.setLimit(0, for: "api")
      domain.pause("api", for: .seconds(1), clock: clock)
      try await queue.run(AsyncOperation().limited("api", to: 2, in: domain))
    }
  }

  @Test func oneThatIsReadyInItsQueue_waitsForTheNewLimit() async {
    let suspended = OperationQueue.suspended()
    let operation = held("called")
    suspended.addOperation(operation)
    domain.setLimit(0, for: "api")
    suspended.isSuspended = false
    await poll { operation.core.withLock { $0.lifecycle.phase == .suspended(.keys) } }
    domain.setLimit(1, for: "api")
    await operation.finished(opening: operation.gate)
  }

  // MARK: Pauses

  /// A task holds the key as soon as its turn has come.
  private func task(_ name: String, until gate: Gate) -> Task<Void, any Error> {
    immediately { try await withKeys(.limited("api", to: 10), in: domain, name: name) { await gate.opened() } }
  }

  @Test func untilTheLastOfSeveralPausesEnds_noneBeginsAndHoldersGoOn() async throws {
    let gates = [Gate(), Gate()]
    let holder = task("holder", until: gates[0])
    for seconds in [5, 1, -1, 0, 3] { domain.pause("api", for: .seconds(seconds), clock: clock) }
    let waiting = task("waiting", until: gates[1])
    #expect(domain.holders(of: "api") == ["holder"] && domain.waiting(for: "api") == ["waiting"])
    try await holder.value(opening: gates[0])
    clock.advance(by: .seconds(4))
    domain.pause("api", for: .seconds(2), clock: clock)
    let steps: [Duration] = [.seconds(1), .seconds(1) - .nanoseconds(1), .nanoseconds(1)]
    for step in steps {
      #expect(domain.holders(of: "api").isEmpty && domain.waiting(for: "api") == ["waiting"])
      clock.advance(by: step)
    }
    #expect(domain.holders(of: "api") == ["waiting"])
    try await waiting.value(opening: gates[1])
    #expect(domain.isUnused)
  }

  @Test func aPausedKeyIsNotInUse_forAPolicy() async throws {
    domain.pause("api", for: .seconds(1), clock: clock)
    let first = held("first").exclusive("api", policy: .replace, in: domain)
    queue.addOperation(first)
    #expect(domain.waiting(for: "api") == ["first"])
    let error = await #expect(throws: OperationError.self) {
      try await queue.run(AsyncOperation().exclusive("api", policy: .drop, in: domain))
    }
    #expect(error?.code == .excluded && error?.message.contains("“first” has the key") == true)
    clock.advance(by: .seconds(1))
    await first.finished(opening: first.gate)
    domain.pause("api", for: .seconds(1), clock: clock)
    let second = held("second").exclusive("api", policy: .drop, in: domain)
    queue.addOperation(second)
    clock.advance(by: .seconds(1))
    await second.finished(opening: second.gate)
    #expect(second.isSuccessful)
  }

  // MARK: Throttles

  private func throttled(_ name: String, to count: Int = 1) -> NoteOperation {
    let note = NoteOperation(name, journal).throttled("api", to: count, per: .seconds(1), in: domain)
    note.clock = clock
    return note
  }

  @Test func noMoreThanTheCountBeginWithinAnyHalfOpenInterval() async {
    await queue.run(settling: (0..<2).map { throttled("a\($0)", to: 3) })
    clock.advance(by: .milliseconds(600))
    let second = (0..<4).map { throttled("b\($0)", to: 3) }
    queue.addOperations(second)
    await second[0].finished()
    await clock.advance(by: .milliseconds(400) - .nanoseconds(1), sleepers: 1)
    #expect(Set(journal.entries) == ["a0", "a1", "b0"] && domain.waiting(for: "api") == ["b1", "b2", "b3"])
    clock.advance(by: .nanoseconds(1))
    for operation in second[1...2] { await operation.finished() }
    #expect(Set(journal.entries) == ["a0", "a1", "b0", "b1", "b2"], "two have left the window, one is in it")
    await clock.advance(by: .milliseconds(600), sleepers: 1)
    await second[3].finished()
  }

  @Test func membersBeginByTheClockOfTheGroupAndWaitWithoutASlot() async {
    let members = ["1", "2"].map { name in
      NoteOperation(name, journal).throttled("api", to: 1, per: .seconds(1), in: domain)
    }
    let next = NoteOperation("next", journal)
    let group = GroupOperation(members + [next], maxConcurrentOperationCount: 1)
    group.clock = clock
    queue.addOperation(group)
    await next.finished()
    await clock.waitForSleepers(1)
    #expect(journal.entries == ["1", "next"])
    clock.advance(by: .seconds(1))
    await group.finished()
  }

  @Test func oneThatIsCancelledWhileItWaits_isNamedInReportsAndDoesNotCount() async throws {
    let operations = ["1", "2", "3"].map { throttled($0) }
    queue.addOperations(operations)
    await operations[0].finished()
    await clock.waitForSleepers(1)
    let entry = try queue.stallReport().entry("2")
    #expect(entry.cause == .exclusivity && entry.description == "“2” waits for its turn under the throttled key “api”.")
    operations[1].cancel()
    await operations[1].finished()
    await clock.advance(by: .seconds(1), sleepers: 1)
    await operations[2].finished()
    #expect(journal.entries == ["1", "3"])
  }

  @Test func theWeightsOfStartsAddUp_andAHeavyOneIsNotOvertaken() async throws {
    @Sendable func start(_ weight: Int, within limit: Duration? = .zero) async throws {
      let claim = ExclusivityClaim.throttled("tokens", to: 100, per: .seconds(60), weight: weight)
      try await withKeys(claim, in: domain, waitLimit: limit, clock: clock) { journal.write("\(weight)") }
    }
    try await start(70)
    clock.advance(by: .seconds(30))
    try await start(20)
    await #expect(throws: OperationError(.expired, "")) { try await start(11) }
    let heavy = immediately { try await start(40, within: nil) }
    await #expect(throws: OperationError(.expired, "")) { try await start(10) }
    clock.advance(by: .seconds(30))
    try await heavy.value
    await #expect(throws: OperationError(.expired, "")) { try await start(41) }
    try await start(40)
    #expect(journal.entries == ["70", "20", "40", "40"])
  }

  @Test func anIntervalThatIsNamedTwice_countsOnceWithTheLargerWeightAndTheSmallerCount() async {
    let note = throttled("first", to: 3).throttled("api", to: 4, per: .seconds(1), weight: 2, in: domain)
    await queue.run(settling: [note])
    let (second, third) = (throttled("second", to: 3), throttled("third", to: 3))
    queue.addOperations([second, third])
    await second.finished()
    #expect(domain.waiting(for: "api") == ["third"])
    clock.advance(by: .seconds(1))
    await third.finished()
  }

  @Test func startsOfKeysThatAreNotUsedAreForgotten() async {
    for index in 0..<1000 {
      await queue.run(settling: [AsyncOperation().throttled("\(index)", to: 1, per: .nanoseconds(1), in: domain)])
    }
    await poll { domain.isUnused }
  }

  /// The window of the first has not passed when the second, which waits for it, gains a dependency and loses it again.
  @Test(arguments: [false, true]) func aWaiterThatGainsADependency_waitsForTheSameWindowAgain(isManual: Bool) async {
    let operations = ["first", "second"].map { name in
      let note = NoteOperation(name, journal)
      if isManual { note.clock = clock }
      return note.throttled("api", to: 1, per: .milliseconds(50), in: domain)
    }
    await queue.run(settling: [operations[0]])
    // If the window passes early, the second is permitted, but does not start.
    queue.isSuspended = true
    queue.addOperation(operations[1])
    if isManual { await clock.waitForSleepers(1) }
    let late = AsyncOperation()
    late ==> operations[1]
    queue.isSuspended = false
    await queue.run(settling: [late])
    if isManual { await clock.advance(by: .milliseconds(50), sleepers: 1) }
    await operations[1].finished()
    #expect(journal.entries == ["first", "second"])
  }

  /// The operation outside is permitted, but its group has the slot, and the member waits for that start.
  @Test func aPermitThatIsNotUsed_isNoStart() async {
    let single = OperationQueue.limited(to: 1)
    let held = HeldOperation()
    let group = GroupOperation("group") { held }.shared("api", in: domain)
    await single.add(group, until: held.begun)
    let (outside, member) = (throttled("outside"), throttled("member"))
    single.addOperation(outside)
    #expect(domain.waiting(for: "api") == ["outside"])
    group.addOperation(member)
    await group.finished(opening: held.gate)
    await clock.advance(by: .seconds(1), sleepers: 1)
    await outside.finished()
    #expect(journal.entries == ["member", "outside"])
  }

  @Test func reportsNameALimitAndAPause_withTheRest() async throws {
    domain.pause("api", for: .seconds(30), clock: clock)
    clock.advance(by: .seconds(18))
    let operation = held("call")
    queue.addOperation(operation)
    var entry: StallReport.Entry? { queue.stallReport().entries.first }
    #expect(entry?.cause == .exclusivity)
    let paused = "“call” waits for its turn under the key “api”, which is paused for another 12 s."
    #expect(entry?.description == paused)
    domain.setLimit(0, for: "api")
    #expect(entry?.description == paused)
    clock.advance(by: .seconds(12))
    #expect(entry?.description == "“call” waits for its turn under the key “api”, whose limit is set to 0.")
    domain.setLimit(1, for: "api")
    await operation.begun.opened()
    let next = held("next")
    queue.addOperation(next)
    let waiting = try queue.stallReport().entry("next").description
    #expect(waiting == "“next” waits for its turn under the key “api”, whose limit is set to 1.")
    await queue.drained(opening: [operation.gate, next.gate])
  }

  /// More claimants than hold the key together wait, or are stepped over, so that a sum of their weights is no `Int`.
  @Test func extremeWeightsLimitsAndPauses_areCounted() async {
    let suspended = OperationQueue.suspended()
    let heavy = (0..<4).map { _ in AsyncOperation().limited("memory", to: .max, weight: .max, in: domain) }
    suspended.addOperation(heavy[0])
    await poll { KeyRegistry.withTable { $0.entries.all.contains { $0.state == .called(until: nil) } } }
    heavy[1].queuePriority = .high
    heavy[2].queuePriority = .veryHigh
    suspended.addOperations(Array(heavy.dropFirst()))
    domain.pause("memory", for: Duration(attoseconds: .min))
    domain.setLimit(0, for: "memory")
    domain.setLimit(.max, for: "memory")
    suspended.isSuspended = false
    for operation in heavy { await operation.finished() }
    #expect(heavy.allSatisfy { $0.isSuccessful })
  }
}
