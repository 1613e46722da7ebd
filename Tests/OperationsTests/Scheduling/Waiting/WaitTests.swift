import Foundation
import OperationsTestSupport
import Soak
import Testing

@testable import Operations

/// A thread that blocks until a scheduler has run a body, or until the timeout.
@Suite(.timeLimit(.minutes(5)))
struct WaitTests {
  private let a = SerialScheduler(name: "Alpha")
  private let b = SerialScheduler(name: "Beta")
  private let c = SerialScheduler(name: "Gamma")
  private let results = Journal<String>()

  @Test(arguments: [nil, .seconds(50), .seconds(Int64.max)] as [Duration?])
  func itReturnsTheValueAfterWhatWasScheduledBefore(timeout: Duration?) async throws {
    for index in 0..<200 { a.schedule { results.write("\(index)") } }
    let (count, isCurrent) = try await onThread { try a.wait(timeout: timeout) { (results.count, a.isCurrent) } }.get()
    #expect(count == 200 && isCurrent)
  }

  @Test func itThrowsTheBodysError() async {
    let result = await onThread { try a.wait { throw TestError("broken") } }
    #expect(throws: TestError("broken")) { try result.get() }
  }

  @Test func onItsOwnSchedulerItRunsTheBodyAtOnce() async throws {
    let end = await a.held()
    a.schedule {
      try? a.wait { try a.wait { results.write("body") } }
      results.write("event")
    }
    a.schedule { results.write("queued") }
    a.queue.addOperation { try? a.wait { results.write("operation") } }
    end.open()
    await results.reaches(4)
    #expect(results.entries == ["body", "event", "queued", "operation"])
    #expect(try await Notes(on: a).perform { try a.wait { "job" } } == "job")
    #expect(try await MainActor.run { try SerialScheduler.main.wait { "main" } } == "main")
    await #expect(throws: TestError("broken")) { try await a.run { try a.wait { throw TestError("broken") } } }
  }

  @Test func theMainThreadMayWaitAndBeWaitedFor() async throws {
    let isCurrent = try await MainActor.run { (try a.wait { a.isCurrent }, SerialScheduler.main.isCurrent) }
    #expect(isCurrent == (true, true))
    let wait: @Sendable () throws -> Int = { try SerialScheduler.main.wait { MainActor.assumeIsolated { 8 } } }
    #expect(try await onThread(wait).get() == 8)
    #expect(try await a.run(wait) == 8)
  }

  // MARK: Timeouts

  @Test(arguments: [Duration.milliseconds(20), .zero, .seconds(-1)])
  func oneThatHasNotBegunInTimeNeverRuns(timeout: Duration) async {
    let live = LiveCount()
    let end = await a.held()
    let result = await onThread { [token = LiveCount.Token(live)] in
      try a.wait(timeout: timeout) { withExtendedLifetime(token) { results.write("ran") } }
    }
    #expect(result.code == .timedOut && result.message.contains("“Alpha”"))
    await a.drained(afterOpening: end)
    #expect(results.entries.isEmpty)
    await live.none()
  }

  private func note(_ name: String, _ body: () throws -> Void) {
    do {
      try body()
      results.write(name)
    } catch OperationError.Code.waitCycle {
      results.write("\(name): cycle")
    } catch {
      results.write("\(error)")
    }
  }

  /// Waits for a body that begins before the timeout and finishes after it.
  private func waitShortly(for target: SerialScheduler, _ body: @escaping @Sendable () -> Void) {
    var hasBegun = false
    while !hasBegun {
      let result = Result { try target.wait(timeout: .milliseconds(10), body) }
      guard result.code == .timedOut else {
        Issue.record("\(result)")
        return
      }
      hasBegun = result.message.contains("still running")
    }
    results.write("short: timed out")
  }

  @Test func oneThatHasBegunGoesOnToItsEndAfterTheTimeout() async {
    let end = Gate()
    _ = await onThread {
      waitShortly(for: a) {
        end.pass()
        results.write("ended")
      }
    }
    await a.drained(afterOpening: end)
    #expect(results.entries == ["short: timed out", "ended"])
  }

  @Test func waitThatHasJustEndedIsNoReasonToRefuseAnother() async {
    let count = 500
    for _ in 0..<count {
      a.schedule { _ = try? b.wait { b.schedule { note("back") { try a.wait {} } } } }
      await a.drained()
      await b.drained()
    }
    #expect(results.entries == Array(repeating: "back", count: count))
  }

  @Test func abandonedBodyIsNotServedInTheMiddleOfSomethingElse() async {
    let left = Gate()
    let isServed = Locked(false)
    a.schedule {
      waitShortly(for: b) {
        left.pass()
        note("abandoned") { try a.wait { isServed.withLock { $0 = true } } }
      }
      left.open()
      note("other") {
        try c.wait {
          while a.statistics.eventsQueued == 0, !isServed.withLock({ $0 }) { work(for: .microseconds(10)) }
        }
      }
      results.write(isServed.withLock { $0 } ? "served in the middle" : "end")
    }
    await results.reaches(4)
    #expect(results.entries == ["short: timed out", "other", "end", "abandoned"])
  }

  /// Waits of all kinds in all directions, some of them with a short timeout. All end, and the graph is empty then.
  @Test(arguments: SeededGenerator.seeds)
  func noneHangs(seed: UInt64) async {
    let schedulers = (0..<4).map { SerialScheduler(name: "\($0)") }
    @Sendable func wander(_ depth: Int, _ generator: SeededGenerator) {
      var generator = generator
      guard depth < 5 else { return }
      for _ in 0...Int.random(in: 0...1, using: &generator) {
        let target = schedulers.randomElement(using: &generator)!
        let timeout: Duration? =
          Int.random(in: 0..<3, using: &generator) == 0
          ? .microseconds(Int.random(in: 0..<1000, using: &generator)) : nil
        let next = SeededGenerator(seed: generator.next())
        let isSlow = Bool.random(using: &generator)
        do {
          try target.wait(timeout: timeout) {
            if isSlow { work(for: .microseconds(200)) }
            wander(depth + 1, next)
          }
        } catch OperationError.Code.waitCycle, OperationError.Code.timedOut {
        } catch {
          Issue.record(error)
        }
      }
    }
    await onThreads(4) { number in
      var generator = SeededGenerator(seed: seed &* 4 &+ UInt64(number))
      for _ in 0..<20 {
        let scheduler = schedulers.randomElement(using: &generator)!
        let next = SeededGenerator(seed: generator.next())
        switch Int.random(in: 0..<3, using: &generator) {
        case 0: wander(0, next)
        case 1: scheduler.schedule { wander(0, next) }
        default: scheduler.queue.addOperation { wander(0, next) }
        }
      }
    }
    // A body that was given up may have come to wait on one that had finished.
    for _ in 0..<10 { for scheduler in schedulers { await scheduler.queue.finished() } }
    for scheduler in schedulers { #expect(scheduler.statistics.eventsQueued == 0) }
    #expect(WaitGraph.shared.withLock { graph in schedulers.allSatisfy { graph.waits(of: $0).isEmpty } })
  }
  #if !os(iOS) && !os(tvOS) && !os(watchOS) && !os(visionOS)
  /// Runs in its own process, because the waits of other tests would be refused, too.
  @Test func aWaitThatMightFindNoThreadIsRefused() async {
    await #expect(processExitsWith: .success) {
      let (target, late) = (SerialScheduler(name: "target"), SerialScheduler(name: "late"))
      let end = await target.held()
      let (begun, ended) = (Journal<Int>(), Journal<Int>())
      for index in 0..<200 {
        SerialScheduler(name: "waiter \(index)").schedule {
          begun.write(index)
          // The wait of the late scheduler may be among the first 200 for a moment.
          while (try? target.wait { ended.write(index) }) == nil {}
        }
      }
      await begun.reaches(200)
      // Some of the waiters may not be blocked yet.
      var refusal: Result<Void, any Error>
      repeat {
        refusal = try await late.run { Result { try target.wait(timeout: .milliseconds(10)) {} } }
      } while refusal.code == .timedOut
      let expected = "“late” cannot wait for “target” because 200 schedulers already block"
      precondition(refusal.code == .overflow && refusal.message.contains(expected), refusal.message)
      // A thread that belongs to no scheduler may wait.
      let isWaiting = Gate()
      async let outside = onThread {
        isWaiting.open()
        return try target.wait { 1 }
      }
      await isWaiting.opened()
      end.open()
      let value = try await outside.get()
      precondition(value == 1)
      await ended.reaches(200)
      // The threads of the waiters may take a moment to continue.
      while (try? await late.run { try target.wait {} }) == nil {}
    }
  }
  #endif
}
