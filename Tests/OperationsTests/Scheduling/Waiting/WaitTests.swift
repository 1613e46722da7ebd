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
  func itReturnsTheValueOrErrorAfterWhatWasScheduledBefore(timeout: Duration?) async throws {
    for index in 0..<200 { a.schedule { results.write("\(index)") } }
    let (count, isCurrent) = try await onThread { try a.wait(timeout: timeout) { (results.count, a.isCurrent) } }.get()
    #expect(count == 200 && isCurrent)
    let result = await onThread { try a.wait(timeout: timeout) { throw TestError("broken") } }
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

  @Test func oneThatHasBegunGoesOnToItsEndAfterTheTimeout() async throws {
    let end = Gate()
    var message = ""
    // The timeout may be over before the body has begun.
    while !message.contains("still running") {
      let result = await onThread {
        try a.wait(timeout: .milliseconds(10)) {
          end.pass()
          results.write("ended")
        }
      }
      try #require(result.code == .timedOut)
      message = result.message
    }
    #expect(results.entries.isEmpty)
    await a.drained(afterOpening: end)
    #expect(results.entries == ["ended"])
  }

  @Test func waitThatHasJustEnded_closesNoCycle() async {
    let count = 500
    for _ in 0..<count {
      a.schedule { _ = try? b.wait { b.schedule { results.write((try? a.wait { "back" }) ?? "refused") } } }
      await a.drained()
      await b.drained()
    }
    #expect(results.entries == Array(repeating: "back", count: count))
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
      for index in 0..<WaitGraph.threadLimit {
        let waiter = SerialScheduler(name: "waiter \(index)")
        let link = WaitLink(from: waiter, to: target, after: nil, canServe: true)
        _ = WaitGraph.shared.withLock { $0.begin(link) }
      }
      let refusal = try await late.run { Result { try target.wait {} } }
      let expected = "“late” cannot wait for “target” because 200 schedulers already block"
      precondition(refusal.code == .overflow && refusal.message.contains(expected), refusal.message)
      // A thread that belongs to no scheduler may wait.
      let value = try await onThread { try target.wait { 1 } }.get()
      precondition(value == 1)
    }
  }
  #endif
}
