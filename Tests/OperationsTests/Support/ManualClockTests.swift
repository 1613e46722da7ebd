import Operations
import OperationsTestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct ManualClockTests {
  private let clock = ManualClock()
  private let journal = Journal<String>()

  /// What the package does at a time, from the inside.
  private func note(_ text: String, after delay: Duration) -> DelayOperation {
    let operation = DelayOperation(delay)
    operation.clock = clock
    operation.addObserver(OperationObserver(didFinish: { [journal] _ in journal.write(text) }))
    return operation
  }

  @Test func itStandsStillUntilItIsMoved() {
    let start = clock.now
    #expect(clock.now == start && start.offset == .zero)
    clock.advance(by: .seconds(3))
    clock.advance(by: .zero)
    #expect(start.duration(to: clock.now) == .seconds(3))
    clock.advance(to: .init(offset: .seconds(5)))
    #expect(clock.now.offset == .seconds(5))
  }

  @Test func whatIsDueIsDoneInOrderOfTimeThenOfAsking() async {
    for (text, seconds) in [("c", 2), ("a", 1), ("d", 2), ("b", 1), ("late", 9)] {
      await start(note(text, after: .seconds(seconds)))
    }
    #expect(clock.sleepers == 5)
    clock.advance(by: .seconds(5))
    #expect(journal.entries == ["a", "b", "c", "d"] && clock.sleepers == 1)
    clock.advance(by: .seconds(4))
    #expect(journal.entries.last == "late")
  }

  @Test func whatIsAskedForMeanwhileCountsFromThen() async {
    let first = note("first", after: .seconds(1))
    let second = note("second", after: .seconds(1))
    first.addObserver(
      OperationObserver(didFinish: { [clock, journal] _ in
        journal.write("\(clock.now.offset)")
        // No lock is held: this asks the clock for more.
        second.start()
      })
    )
    await start(first)
    clock.advance(by: .seconds(2))
    #expect(journal.entries == ["first", "1.0 seconds", "second"] && clock.now.offset == .seconds(2))
  }

  @Test func aSleepingTaskGoesOnWhenItIsTime() async throws {
    let task = Task { [clock] in
      try await clock.sleep(for: .seconds(2))
      return clock.now.offset
    }
    await clock.waitForSleepers(1)
    clock.advance(by: .seconds(1))
    #expect(clock.sleepers == 1)
    clock.advance(by: .seconds(1))
    #expect(try await task.value == .seconds(2))
    try await clock.sleep(until: .init(offset: .seconds(1)))
  }

  @Test func aCancelledSleepEnds() async {
    let task = Task { [clock] in try await clock.sleep(for: .seconds(2)) }
    await clock.waitForSleepers(1)
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(clock.sleepers == 0)
    let late = Task { [clock] in
      unsafe withUnsafeCurrentTask { task in unsafe task?.cancel() }
      try await clock.sleep(for: .seconds(2))
    }
    await #expect(throws: CancellationError.self) { try await late.value }
  }

  @Test func cancelledAtAnyMomentASleepEndsOnce() async {
    for _ in 0..<500 {
      let task = Task { [clock] in try await clock.sleep(for: .seconds(1)) }
      await onThreads(2) { [clock] thread in if thread == 0 { task.cancel() } else { clock.advance(by: .seconds(1)) } }
      task.cancel()
      _ = await task.result
      #expect(clock.sleepers == 0)
    }
  }

  @Test func severalThreadsMayMoveIt() async {
    await onThreads(4) { [clock] _ in for _ in 0..<1000 { clock.advance(by: .seconds(1)) } }
    #expect(clock.now.offset == .seconds(4000))
  }

  @Test func manySleepers() async {
    let tasks = (0..<5000).map { index in
      Task { [clock] in try await clock.sleep(for: .milliseconds(1 + index % 100)) }
    }
    await clock.waitForSleepers(5000)
    clock.advance(by: .seconds(1))
    for task in tasks { await #expect(throws: Never.self) { try await task.value } }
  }
}
