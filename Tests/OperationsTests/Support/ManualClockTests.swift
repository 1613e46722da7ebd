import Operations
import OperationsTestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct ManualClockTests {
  private let clock = ManualClock()
  private let journal = Journal<String>()

  /// Timed work of the package, which writes an entry when it is done.
  private func note(_ text: String, after delay: Duration) -> DelayOperation {
    let operation = DelayOperation(delay)
    operation.clock = clock
    operation.addObserver(OperationObserver(didFinish: { [journal] _ in journal.write(text) }))
    return operation
  }

  private func sleep(for duration: Duration) -> Task<Duration, any Error> {
    Task { [clock] in
      try await clock.sleep(for: duration)
      return clock.now.offset
    }
  }

  @Test func advances_addUpAlsoFromSeveralThreads() async {
    #expect(clock.now.offset == .zero)
    clock.advance(by: .zero)
    clock.advance(by: .seconds(3))
    #expect(clock.now.offset == .seconds(3))
    clock.advance(to: .init(offset: .seconds(5)))
    await onThreads(4) { [clock] _ in for _ in 0..<1000 { clock.advance(by: .seconds(1)) } }
    #expect(clock.now.offset == .seconds(4005))
  }

  @Test func dueSleepers_wakeInOrderOfTimeThenOfWaiting() async {
    for (text, seconds) in [("c", 2), ("a", 1), ("d", 2), ("b", 1), ("late", 9)] {
      await start(note(text, after: .seconds(seconds)))
    }
    #expect(clock.sleepers == 5)
    clock.advance(by: .seconds(5))
    #expect(journal.entries == ["a", "b", "c", "d"] && clock.sleepers == 1)
    clock.advance(by: .seconds(4))
    #expect(journal.entries.last == "late")
  }

  @Test func waitThatBeginsDuringAnAdvance_countsFromThen() async {
    let first = note("first", after: .seconds(1))
    let second = note("second", after: .seconds(1))
    first.addObserver(
      OperationObserver(didFinish: { [clock, journal] _ in
        journal.write("\(clock.now.offset)")
        // The clock can be used again, because no lock is held.
        second.start()
      })
    )
    await start(first)
    clock.advance(by: .seconds(2))
    #expect(journal.entries == ["first", "1.0 seconds", "second"] && clock.now.offset == .seconds(2))
  }

  @Test func sleep_endsWhenItsTimeHasCome() async throws {
    let task = sleep(for: .seconds(2))
    await clock.waitForSleepers(1)
    clock.advance(by: .seconds(1))
    #expect(clock.sleepers == 1)
    clock.advance(by: .seconds(1))
    #expect(try await task.value == .seconds(2))
    try await clock.sleep(until: .init(offset: .seconds(1)))
  }

  @Test func cancelledSleep_throws() async {
    let task = sleep(for: .seconds(2))
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

  @Test func sleepCancelledWhileTheClockMoves_endsOnce() async {
    for _ in 0..<500 {
      let task = sleep(for: .seconds(1))
      await onThreads(2) { [clock] thread in if thread == 0 { task.cancel() } else { clock.advance(by: .seconds(1)) } }
      task.cancel()
      _ = await task.result
      #expect(clock.sleepers == 0)
    }
  }
}
