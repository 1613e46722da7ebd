import Foundation
import OperationsTestSupport
import Soak
import Testing

@testable import Operations

/// Limits that change, and pauses, while keys are in use.
@Suite(.timeLimit(.minutes(5)))
struct KeyLimitTests {
  private let domain = ExclusivityDomain()
  private let queue = OperationQueue()
  private let clock = ManualClock()

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

  @Test func theSmallestLimitCounts_andWeightsCount() async {
    domain.setLimit(2, for: "api")
    let (first, second, heavy) = (held("first", to: 1), held("second"), held("heavy", weight: 3))
    queue.addOperations([first, second, heavy])
    await first.begun.opened()
    #expect(domain.waiting(for: "api") == ["second", "heavy"])
    await first.finished(opening: first.gate)
    await second.finished(opening: second.gate)
    #expect(domain.waiting(for: "api") == ["heavy"])
    domain.setLimit(3, for: "api")
    await heavy.finished(opening: heavy.gate)
  }

  @Test func aLimitOutlivesTheUseOfTheKey_andConcernsOneKeyOfOneDomain() async throws {
    domain.setLimit(1, for: "api")
    try await withKeys(.shared("api"), in: domain) {
      try await withKeys(.shared("other"), in: domain, waitLimit: .zero) {}
      try await withKeys(.shared("api"), in: ExclusivityDomain(), waitLimit: .zero) {}
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
    await poll { operation.core.withLock { $0.lifecycle.phase == .suspended(.turn) } }
    domain.setLimit(1, for: "api")
    await operation.finished(opening: operation.gate)
  }

  @Test func crossedWaitsUnderALimit_endWithAnError() async throws {
    let (domain, begun) = (domain, [Gate(), Gate()])
    domain.setLimit(1, for: "a")
    domain.setLimit(1, for: "b")
    let tasks = [("a", "b"), ("b", "a")].enumerated().map { index, keys in
      Task {
        try await withKeys(.shared(ExclusivityKey(keys.0)), in: domain) {
          begun[index].open()
          await begun[1 - index].opened()
          try await withKeys(.shared(ExclusivityKey(keys.1)), in: domain) {}
        }
      }
    }
    #expect([await tasks[0].result.code, await tasks[1].result.code].compactMap(\.self) == [.waitCycle])
  }

  // MARK: Pauses

  /// A task holds the key as soon as its turn has come.
  private func task(_ name: String, until gate: Gate) -> Task<Void, any Error> {
    immediately { try await withKeys(.limited("api", to: 10), in: domain, name: name) { await gate.opened() } }
  }

  @Test func aPause_letsNoneBeginAndHoldersGoOn() async throws {
    let gates = [Gate(), Gate()]
    let holder = task("holder", until: gates[0])
    domain.pause("api", for: .seconds(30), clock: clock)
    let waiting = task("waiting", until: gates[1])
    #expect(domain.holders(of: "api") == ["holder"] && domain.waiting(for: "api") == ["waiting"])
    gates[0].open()
    try await holder.value
    clock.advance(by: .seconds(30) - .nanoseconds(1))
    #expect(domain.holders(of: "api").isEmpty && domain.waiting(for: "api") == ["waiting"])
    clock.advance(by: .nanoseconds(1))
    #expect(domain.holders(of: "api") == ["waiting"])
    gates[1].open()
    try await waiting.value
    #expect(domain.isUnused)
  }

  @Test func theLongerOfTwoPausesCounts() async throws {
    for seconds in [5, 1, -1, 0, 3] { domain.pause("api", for: .seconds(seconds), clock: clock) }
    let gate = Gate()
    let waiting = task("waiting", until: gate)
    clock.advance(by: .seconds(4))
    domain.pause("api", for: .seconds(2), clock: clock)
    for _ in 0..<2 {
      #expect(domain.waiting(for: "api") == ["waiting"])
      clock.advance(by: .seconds(1))
    }
    #expect(domain.holders(of: "api") == ["waiting"])
    gate.open()
    try await waiting.value
    #expect(domain.isUnused)
  }

  @Test func membersOfAGroup_waitWithoutASlot() async throws {
    domain.pause("api", for: .seconds(1), clock: clock)
    let (member, other) = (held("member"), AsyncOperation())
    let group = GroupOperation([member, other], maxConcurrentOperationCount: 1)
    queue.addOperation(group)
    try await other.completed()
    #expect(member.state == .pending)
    clock.advance(by: .seconds(1))
    await member.finished(opening: member.gate)
    await group.finished()
  }

  @Test func aRetry_waitsWithItsNextAttempt() async throws {
    let attempts = Journal<Int>()
    let retry = RetryOperation(attempts: 2) { [domain, clock] attempt in
      attempts.write(attempt)
      if attempt > 1 { return }
      domain.pause("api", for: .seconds(7), clock: clock)
      throw TestError("429")
    }
    queue.addOperation(retry.named("retry").limited("api", to: 2, in: domain))
    await attempts.reaches(1)
    await poll { attempts.count == 2 || domain.waiting(for: "api") == ["retry"] }
    clock.advance(by: .seconds(6))
    #expect(attempts.entries == [1] && domain.holders(of: "api").isEmpty)
    clock.advance(by: .seconds(1))
    try await retry.completed()
    #expect(attempts.entries == [1, 2])
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

  @Test func pausesAndLimitsThatCrossStarts_loseNoWaiter() async {
    for round in 0..<(isThorough ? 2_000 : 100) {
      let operations = (0..<20).map { _ in AsyncOperation().limited("api", to: 3, in: domain) }
      await onThreads(3) { [domain, queue] thread in
        switch thread {
        case 0: for operation in operations { queue.addOperation(operation) }
        case 1: for limit in [0, 1, nil, 2, nil] as [Int?] { domain.setLimit(limit, for: "api") }
        default: for _ in 0..<5 { domain.pause("api", for: .microseconds(round % 50)) }
        }
      }
      for operation in operations { await operation.finished() }
    }
    await poll { domain.isUnused }
  }

  // MARK: Reports

  @Test func reportsNameALimitAndAPause_withTheRest() async {
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
    domain.setLimit(nil, for: "api")
    await operation.finished(opening: operation.gate)
  }
}
