import Foundation
import OperationsTestSupport
import Testing

@testable import Operations

/// Operations of which only so many may start within an interval.
@Suite(.timeLimit(.minutes(5)))
struct ThrottleTests {
  private let domain = ExclusivityDomain()
  private let queue = OperationQueue()
  private let journal = Journal<String>()
  private let clock = ManualClock()

  private func note(_ name: String, to count: Int = 1) -> NoteOperation {
    let note = NoteOperation(name, journal).throttled("api", to: count, per: .seconds(1), in: domain)
    note.clock = clock
    return note
  }

  @Test func aStartCountsUntilTheEndOfItsHalfOpenWindowAlthoughTheOperationHasFinished() async {
    let (first, second) = (note("1"), note("2"))
    queue.addOperation(first)
    await first.finished()
    clock.advance(by: .milliseconds(500))
    queue.addOperation(second)
    await clock.waitForSleepers(1)
    clock.advance(by: .milliseconds(500) - .nanoseconds(1))
    #expect(journal.entries == ["1"] && domain.waiting(for: "api") == ["2"])
    clock.advance(by: .nanoseconds(1))
    await second.finished()
  }

  @Test func noMoreThanTheCountBeginWithinAnyInterval() async {
    let first = (0..<2).map { note("a\($0)", to: 3) }
    queue.addOperations(first)
    for operation in first { await operation.finished() }
    clock.advance(by: .milliseconds(600))
    let second = (0..<4).map { note("b\($0)", to: 3) }
    queue.addOperations(second)
    await second[0].finished()
    await clock.waitForSleepers(1)
    clock.advance(by: .milliseconds(399))
    #expect(Set(journal.entries) == ["a0", "a1", "b0"])
    clock.advance(by: .milliseconds(1))
    for operation in second[1...2] { await operation.finished() }
    #expect(Set(journal.entries) == ["a0", "a1", "b0", "b1", "b2"], "two have left the window, one is in it")
    await clock.waitForSleepers(1)
    clock.advance(by: .milliseconds(600))
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
    let operations = ["1", "2", "3"].map { note($0) }
    queue.addOperations(operations)
    await operations[0].finished()
    await clock.waitForSleepers(1)
    operations[1].cancel()
    await operations[1].finished()
    await clock.waitForSleepers(1)
    clock.advance(by: .seconds(1))
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
    await clock.waitForSleepers(1)
    clock.advance(by: .seconds(1))
    await operations[1].begun.opened()
    clock.advance(by: .seconds(10))
    #expect(!operations[2].begun.isOpen && domain.holders(of: "api") == ["0", "1"])
    for operation in operations { operation.gate.open() }
    await operations[2].finished()
  }

  @Test func startsOfKeysThatAreNotUsedAreForgotten() async {
    for index in 0..<1000 {
      let operation = AsyncOperation().throttled("\(index)", to: 1, per: .nanoseconds(1), in: domain)
      queue.addOperation(operation)
      await operation.finished()
    }
    #expect(KeyRegistry.read { table in table.logs.keys.count { $0.domain === domain } } < 500)
  }
}
