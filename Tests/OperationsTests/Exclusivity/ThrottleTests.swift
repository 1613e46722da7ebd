import Foundation
import OperationsTestSupport
import Soak
import Testing

@testable import Operations

/// Keys under which only some operations may start within an interval.
@Suite(.timeLimit(.minutes(5)))
struct ThrottleTests {
  private let domain = ExclusivityDomain()
  private let queue = OperationQueue()
  private let journal = Journal<String>()
  private let clock = ManualClock()

  private func throttled(_ name: String, to count: Int = 1) -> NoteOperation {
    let note = NoteOperation(name, journal).throttled("api", to: count, per: .seconds(1), in: domain)
    note.clock = clock
    return note
  }

  @Test func aStartCountsUntilTheEndOfItsHalfOpenWindowAlthoughTheOperationHasFinished() async {
    let (first, second) = (throttled("1"), throttled("2"))
    await queue.run(settling: [first])
    clock.advance(by: .milliseconds(500))
    queue.addOperation(second)
    await clock.advance(by: .milliseconds(500) - .nanoseconds(1), sleepers: 1)
    #expect(journal.entries == ["1"] && domain.waiting(for: "api") == ["2"])
    clock.advance(by: .nanoseconds(1))
    await second.finished()
  }

  @Test func noMoreThanTheCountBeginWithinAnyInterval() async {
    let first = (0..<2).map { throttled("a\($0)", to: 3) }
    await queue.run(settling: first)
    clock.advance(by: .milliseconds(600))
    let second = (0..<4).map { throttled("b\($0)", to: 3) }
    queue.addOperations(second)
    await second[0].finished()
    await clock.advance(by: .milliseconds(399), sleepers: 1)
    #expect(Set(journal.entries) == ["a0", "a1", "b0"])
    clock.advance(by: .milliseconds(1))
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
    let group = GroupOperation(members + [next])
    group.clock = clock
    group.maxConcurrentOperationCount = 1
    queue.addOperation(group)
    await next.finished()
    await clock.waitForSleepers(1)
    #expect(journal.entries == ["1", "next"])
    clock.advance(by: .seconds(1))
    await group.finished()
  }

  @Test func oneThatIsCancelledWhileItWaitsDoesNotCount() async {
    let operations = ["1", "2", "3"].map { throttled($0) }
    queue.addOperations(operations)
    await operations[0].finished()
    await clock.waitForSleepers(1)
    operations[1].cancel()
    await operations[1].finished()
    await clock.advance(by: .seconds(1), sleepers: 1)
    await operations[2].finished()
    #expect(journal.entries == ["1", "3"])
  }

  @Test func limitAndThrottleOfOneKeyBothCount() async {
    let operations = (0..<3).map { index in
      let held = HeldOperation().named("\(index)").limited("api", to: 2, in: domain)
      held.clock = clock
      return held.throttled("api", to: 1, per: .seconds(1), in: domain)
    }
    queue.addOperations(operations)
    await operations[0].begun.opened()
    await clock.advance(by: .seconds(1), sleepers: 1)
    await operations[1].begun.opened()
    clock.advance(by: .seconds(10))
    #expect(!operations[2].begun.isOpen && domain.holders(of: "api") == ["0", "1"])
    for operation in operations { operation.gate.open() }
    await operations[2].finished()
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
      let operation = AsyncOperation().throttled("\(index)", to: 1, per: .nanoseconds(1), in: domain)
      await queue.run(settling: [operation])
    }
    await poll { domain.isUnused }
  }

  // MARK: Permits that are not used

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

  /// The timer of a window can fire before the thread that starts it has stored it.
  @Test func intervalsThatAreShorterThanAHandOver_pass() async {
    for round in 0..<(isThorough ? 400 : 30) {
      let groups = (0..<4).map { group in
        GroupOperation(
          (0..<20).map { index in
            let interval = Duration.microseconds((round + group + index) % 60 + 1)
            return AsyncOperation().throttled("api", to: 1, per: interval, in: domain)
          }
        )
      }
      await queue.run(settling: groups)
    }
  }
}
