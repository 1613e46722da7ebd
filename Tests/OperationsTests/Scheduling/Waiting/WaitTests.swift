import Foundation
import OperationsTestSupport
import Soak
import Testing

@testable import Operations

/// Waits whose time is over, or that end at the same moment as others begin.
@Suite(.timeLimit(.minutes(5)))
struct WaitTests {
  private let a = SerialScheduler(name: "Alpha")
  private let b = SerialScheduler(name: "Beta")
  private let results = Journal<String>()

  private func note(_ name: String, _ body: () throws -> Void) {
    do {
      try body()
      results.write(name)
    } catch OperationError.Code.waitCycle {
      results.write("\(name): cycle")
    } catch OperationError.Code.timedOut {
      results.write("\(name): timed out")
    } catch {
      results.write("\(error)")
    }
  }

  /// Waits for a body that has begun when the time is over, and is going to need more.
  private func waitShortly(for target: SerialScheduler, _ body: @escaping @Sendable () -> Void) {
    let begun = Gate()
    repeat {
      do {
        try target.wait(timeout: .milliseconds(10)) {
          begun.open()
          body()
        }
        Issue.record("in time")
      } catch OperationError.Code.timedOut {
      } catch {
        Issue.record(error)
      }
    } while !begun.isOpen
    results.write("short: timed out")
  }

  @Test func waitThatHasJustEndedIsNoReasonToRefuseAnother() async {
    let (a, b) = (a, b)
    let count = 500
    for _ in 0..<count {
      a.schedule { _ = try? b.wait { b.schedule { note("back") { try a.wait {} } } } }
      await a.drained()
      await b.drained()
    }
    #expect(results.entries == Array(repeating: "back", count: count))
  }

  /// A waits for B, which waits for A for a short time. What A runs for that goes on when the time is over, and waits
  /// for B, which waits for A again: one of the two has to give way.
  @Test func bodyThatNobodyWaitsForAnyMoreMayNotWaitInACycle() async {
    let (a, b) = (a, b)
    let left = Gate()
    let waiting = Gate()
    a.schedule {
      note("outer") {
        try b.wait {
          waitShortly(for: a) {
            left.pass()
            waiting.open()
            note("of the abandoned one") { try b.wait {} }
          }
          left.open()
          waiting.pass()
          note("last") { try a.wait {} }
        }
      }
      results.write("end")
    }
    await results.reaches(5)
    let entries = results.entries
    #expect(Set(entries).isSuperset(of: ["short: timed out", "outer", "end"]), "\(entries)")
    #expect(entries.count { $0.hasSuffix(": cycle") } <= 1, "\(entries)")
  }

  @Test func whatIsBelowAnAbandonedBodyIsStillServed() async {
    let (a, b) = (a, b)
    let c = SerialScheduler(name: "Gamma")
    let left = Gate()
    a.schedule {
      note("outer") {
        try b.wait {
          // C's wait for B is given up while its body goes on, on B's thread, within what A waits for.
          note("middle") {
            try c.wait {
              waitShortly(for: b) {
                left.pass()
                note("served") { try a.wait {} }
              }
              left.open()
            }
          }
        }
      }
      results.write("end")
    }
    await results.reaches(5)
    #expect(Set(results.entries) == ["short: timed out", "served", "middle", "outer", "end"])
  }

  @Test func whatIsBelowAWaitThatHasEndedIsStillServed() async {
    let (a, b) = (a, b)
    let left = Gate()
    a.schedule {
      note("outer") {
        try b.wait {
          note("middle") {
            try a.wait {
              waitShortly(for: b) {
                left.pass()
                note("served") { try a.wait {} }
              }
            }
          }
        }
      }
      results.write("end")
    }
    await results.reaches(1)
    left.open()
    await results.reaches(5)
    #expect(Set(results.entries) == ["short: timed out", "served", "middle", "outer", "end"])
  }

  /// Who has given up waiting for a body has nothing to do with what that does then.
  @Test func abandonedBodyIsNotServedInTheMiddleOfSomethingElse() async {
    let (a, b) = (a, b)
    let c = SerialScheduler(name: "Gamma")
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

  @Test func waitThatIsHandedOverIsQueuedWhenItsServerHasGone() async {
    let (a, b) = (a, b)
    let begun = Gate()
    let gone = Gate()
    a.schedule {
      waitShortly(for: b) {
        begun.open()
        gone.pass()
        note("back") { try a.wait {} }
      }
      gone.open()
    }
    await results.reaches(2)
    #expect(Set(results.entries) == ["short: timed out", "back"])
  }

  /// Waits of all kinds in all directions, most of them for a short time: nobody hangs, and nothing is left behind.
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
    #expect(WaitGraph.shared.withLock { graph in schedulers.allSatisfy { !graph.isBlocked($0) } })
  }
}
