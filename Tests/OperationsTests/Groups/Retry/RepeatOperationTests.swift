import Foundation
import Operations
import OperationsTestSupport
import Soak
import Testing

@Suite(.timeLimit(.minutes(5)))
struct RepeatOperationTests {
  private let queue = OperationQueue()
  private let clock = ManualClock()
  private let journal = Journal<String>()

  private func note(_ iteration: Int) -> NoteOperation { NoteOperation("\(iteration)", journal) }

  @Test func itRunsOneAfterAnotherUntilThereIsNoNextOne() async throws {
    let polling = RepeatOperation { $0 <= 3 ? note($0) : nil }
    try await queue.run(polling)
    #expect(journal.entries == ["1", "2", "3"] && polling.isSuccessful)
    try await queue.run(RepeatOperation { _ in nil })
  }

  @Test func theFirstFailureEndsIt() async {
    let polling = RepeatOperation { number in
      NoteOperation("\(number)", journal, failing: number == 2 ? TestError("two") : nil)
    }
    await #expect(throws: TestError("two")) { try await queue.run(polling) }
    #expect(journal.entries == ["1", "2"] && !polling.isCancelled && polling.errors.count == 1)
  }

  @Test func anyOperationWillDoAGroupIncluded() async {
    let polling = RepeatOperation { number in
      GroupOperation("round") {
        note(number)
        ResultOperation { if number == 2 { throw TestError("in a group") } }
      }
    }
    let error = await #expect(throws: AggregateError.self) { try await queue.run(polling) }
    #expect(error?.errors(of: TestError.self) == [TestError("in a group")])
    #expect(journal.entries == ["1", "2"])
  }

  @Test func anIterationBringsAlongWhatItWaitsFor() async throws {
    let polling = RepeatOperation { number in
      number > 2 ? nil : NoteOperation("before \(number)", journal) ==> note(number)
    }
    try await queue.run(polling)
    #expect(journal.entries == ["before 1", "1", "before 2", "2"])
  }

  @Test func thePausesFollowTheClock() async throws {
    let backoff = Backoff.exponential(initial: .seconds(1), cap: .seconds(60))
    let polling = RepeatOperation(pausing: backoff) { $0 <= 3 ? note($0) : nil }
    polling.clock = clock
    queue.addOperation(polling)
    for (iteration, pause) in [1, 2, 4].enumerated() {
      await clock.waitForSleepers(1)
      #expect(journal.count == iteration + 1 && polling.isExecuting)
      clock.advance(by: .seconds(pause) - .milliseconds(1))
      #expect(clock.sleepers == 1)
      clock.advance(by: .milliseconds(1))
    }
    try await polling.completed()
    #expect(journal.entries == ["1", "2", "3"])
  }

  @Test func aPauseKeepsNoSlotOfAGroup() async throws {
    let polling = RepeatOperation(pausing: .constant(.seconds(1))) { $0 <= 2 ? note($0) : nil }
    let others = (0..<3).map { NoteOperation("other \($0)", journal) }
    let group = GroupOperation([polling] + others)
    group.clock = clock
    group.maxConcurrentOperationCount = 1
    let run = Task { try await queue.run(group) }
    await journal.reaches(4)
    for _ in 0..<2 {
      await clock.waitForSleepers(1)
      clock.advance(by: .seconds(1))
    }
    try await run.value
    #expect(journal.entries == ["1", "other 0", "other 1", "other 2", "2"])
  }

  @Test func cancelledInAPauseItEndsAtOnce() async {
    let polling = RepeatOperation(pausing: .constant(.seconds(1))) { note($0) }
    polling.clock = clock
    queue.addOperation(polling)
    await clock.waitForSleepers(1)
    polling.cancel()
    #expect(polling.isFinished && clock.sleepers == 0 && journal.count == 1)
    await #expect(throws: CancellationError.self) { try await polling.completed() }
  }

  @Test func cancellingCancelsWhatRuns() async {
    let held = HeldOperation()
    let polling = RepeatOperation { $0 == 1 ? held : note($0) }
    queue.addOperation(polling)
    await held.begun.opened()
    polling.cancel()
    #expect(held.isCancelled && !polling.isFinished)
    held.gate.open()
    await #expect(throws: CancellationError.self) { try await polling.completed() }
    #expect(journal.entries.isEmpty && polling.errors.isEmpty)
  }

  @Test func whatIsCancelledByItselfCancelsIt() async {
    let polling = RepeatOperation { number in
      let iteration = note(number)
      if number == 2 { iteration.cancel() }
      return iteration
    }
    await #expect(throws: CancellationError.self) { try await queue.run(polling) }
    #expect(polling.isCancelled && polling.errors.isEmpty && journal.entries == ["1"])
  }

  @Test func itsOwnTimeoutCountsOverEverything() async {
    let polling = RepeatOperation(pausing: .constant(.seconds(1))) { note($0) }
    polling.clock = clock
    polling.timeout = .milliseconds(1500)
    queue.addOperation(polling)
    await clock.waitForSleepers(2)
    clock.advance(by: .seconds(1))
    await journal.reaches(2)
    await clock.waitForSleepers(2)
    clock.advance(by: .seconds(1))
    let error = await #expect(throws: OperationError.self) { try await polling.completed() }
    #expect(error?.code == .timedOut && journal.count == 2 && clock.sleepers == 0)
  }

  @Test func manyIterationsDoNotNestAndLeaveNothing() async throws {
    let live = LiveCount()
    final class Counted: AsyncOperation, @unchecked Sendable {
      let token: LiveCount.Token
      init(_ live: LiveCount) {
        token = LiveCount.Token(live)
        super.init()
      }
    }
    do {
      let polling = RepeatOperation { number in
        // The one that has just ended, and this one.
        if live.alive > 64 { Issue.record("\(live.alive) are alive") }
        return number <= 5000 ? Counted(live) : nil
      }
      try await queue.run(polling)
    }
    await live.none()
  }

  @Test func cancelledAtAnyMomentItFinishesOnceAndKeepsTheSlotsRight() async {
    for round in 0..<300 {
      let clock = ManualClock()
      let pollings = (0..<4).map { _ in RepeatOperation(pausing: .constant(.seconds(1))) { _ in AsyncOperation() } }
      let notes = (0..<4).map { _ in AsyncOperation() }
      let group = GroupOperation(pollings + notes)
      group.clock = clock
      group.maxConcurrentOperationCount = 1
      queue.addOperation(group)
      await onThreads(2) { thread in
        for index in 0..<4 {
          if thread == 0 { clock.advance(by: .seconds(1)) } else { pollings[(index + round) % 4].cancel() }
        }
      }
      await group.finished()
      #expect(pollings.allSatisfy(\.isFinished) && notes.allSatisfy(\.isSuccessful))
    }
  }
}
