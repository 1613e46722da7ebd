import Foundation
import Operations
import OperationsTestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct ManualClockTests {
  private let clock = ManualClock()
  private let journal = Journal<String>()

  private func note(_ text: String, after delay: Duration) -> DelayOperation {
    let operation = DelayOperation(delay)
    operation.clock = clock
    operation.addObserver(didFinish: { [journal] _ in journal.write(text) })
    return operation
  }

  @Test func waitsOfTests_returnWhenTheirTaskIsCancelled() async {
    let (delay, grace) = (note("delay", after: .seconds(1)), Duration.seconds(3600))
    await start(delay)
    let waits: [@Sendable () async -> Void] = [
      { await Gate().opened() }, { [journal] in await journal.reaches(1) },
      { [clock] in await clock.waitForSleepers(2) }, { [clock] in await clock.run(until: delay, grace: grace) },
      { [clock] in await clock.run(until: { false }, grace: grace) },
    ]
    for call in waits {
      _ = await cancelledTask(call).result
      let late = Task { await call() }
      late.cancel()
      await late.value
    }
    #expect(delay.isExecuting && clock.now.offset == .zero)
    journal.write("later")
    await start(note("sleeper", after: .seconds(1)))
    clock.advance(by: .seconds(1))
    #expect(journal.entries == ["later", "delay", "sleeper"])
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

  @Test func waitThatBeginsDuringAnAdvance_countsFromThen() async {
    let first = note("first", after: .seconds(1))
    let second = note("second", after: .seconds(1))
    first.addObserver(didFinish: { [clock, journal] _ in
      journal.write("\(clock.now.offset)")
      // The clock can be used again, because no lock is held.
      second.start()
    })
    await start(first)
    clock.advance(by: .seconds(2))
    #expect(journal.entries == ["first", "1.0 seconds", "second"] && clock.now.offset == .seconds(2))
  }

  @Test func sleepUntilATimeThatHasPassed_returns_andACancelledOneThrows() async throws {
    try await clock.sleep(until: clock.now)
    let late = cancelledTask { [clock] in try await clock.sleep(for: .seconds(2)) }
    await #expect(throws: CancellationError.self) { try await late.value }
  }

  @Test func sleepCancelledWhileTheClockMoves_endsOnce() async {
    for _ in 0..<500 {
      let task = Task { [clock] in try await clock.sleep(for: .seconds(1)) }
      await onThreads(2) { [clock] thread in if thread == 0 { task.cancel() } else { clock.advance(by: .seconds(1)) } }
      task.cancel()
      _ = await task.result
      #expect(clock.sleepers == 0)
    }
  }

  // MARK: Running

  @Test func run_reachesNoTimeoutWhileARetryBacksOff() async {
    await withTaskGroup(of: Void.self) { lanes in
      for _ in 0..<10 {
        lanes.addTask {
          for _ in 0..<20 {
            let clock = ManualClock()
            let retry = RetryOperation(attempts: 3, backoff: .constant(.seconds(1)), succeeding(at: 3))
            (retry.clock, retry.timeout) = (clock, .seconds(10))
            OperationQueue().addOperation(retry)
            await clock.run(until: retry)
            #expect(retry.isSuccessful && retry.failedAttempts == 2 && clock.now.offset == .seconds(2))
          }
        }
      }
    }
  }

  @Test func run_returnsWhenTheOperationFinishes_beforeTheGraceIsOver() async {
    let delay = note("delay", after: .seconds(5))
    OperationQueue().addOperation(delay)
    async let run: Void = clock.run(until: delay, grace: .seconds(3600))
    await clock.waitForSleepers()
    delay.cancel()
    await run
    #expect(delay.isFinished && clock.now.offset == .zero)
  }

  @Test func run_waitsForASleeper() async {
    let (queue, held, delay) = (OperationQueue(), HeldOperation(), note("delay", after: .seconds(5)))
    held ==> delay
    async let run: Void = clock.run(until: delay, grace: .zero)
    queue.addOperations([held, delay])
    await held.begun.opened()
    #expect(clock.now.offset == .zero)
    held.gate.open()
    await run
    #expect(delay.isSuccessful && clock.now.offset == .seconds(5))
  }

  @Test func run_stopsAtTheDeadlineThatFulfillsItsCondition() async {
    for seconds in 1...3 { await start(note("\(seconds)", after: .seconds(seconds))) }
    await clock.run(until: { journal.count == 2 })
    #expect(journal.entries == ["1", "2"] && clock.now.offset == .seconds(2) && clock.sleepers == 1)
    await clock.run(until: { true })
    #expect(clock.now.offset == .seconds(2))
    clock.advance(by: .seconds(1))
  }

  @Test func run_doesNotMoveToATimeThatTheClockCannotShow() async {
    let delay = note("never", after: .longest)
    await start(delay)
    var checks = 0
    await clock.run(
      until: {
        checks += 1
        return checks == 5
      },
      grace: .zero
    )
    #expect(clock.now.offset == .zero)
    delay.cancel()
  }
}
