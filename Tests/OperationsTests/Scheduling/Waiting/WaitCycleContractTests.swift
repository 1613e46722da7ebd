import Foundation
import Operations
import OperationsTestSupport
import Soak
import Testing

/// Waits that could never end are refused, and everything else goes on.
@Suite(.timeLimit(.minutes(5)))
struct WaitCycleContractTests {
  private let a = SerialScheduler(name: "Alpha")
  private let b = SerialScheduler(name: "Beta")
  private let c = SerialScheduler(name: "Gamma")

  /// Each is at an event, and waits for the next one as soon as all have begun.
  private func cross(_ ring: [SerialScheduler]) async -> [Result<String, any Error>] {
    let begun = Journal<Int>()
    let all = Gate()
    let results = Journal<Result<String, any Error>>()
    for (index, scheduler) in ring.enumerated() {
      let next = ring[(index + 1) % ring.count]
      scheduler.schedule {
        begun.write(index)
        all.pass()
        results.write(Result { try next.wait { next.name } })
      }
    }
    await begun.reaches(ring.count)
    all.open()
    await results.reaches(ring.count)
    return results.entries
  }

  @Test func ofTwoWaitsThatCrossExactlyOneIsRefused() async throws {
    for _ in 0..<100 {
      let results = await cross([a, b])
      let refused = results.filter { $0.code == .waitCycle }
      #expect(refused.count == 1)
      #expect(refused.first?.message.contains("Alpha") == true && refused.first?.message.contains("Beta") == true)
      #expect(results.filter { (try? $0.get()) != nil }.count == 1)
    }
    #expect(try await a.run { 1 } + b.run { 2 } == 3)
  }

  @Test func ofThreeWaitsInACycleExactlyOneIsRefused() async throws {
    for _ in 0..<50 {
      let results = await cross([a, b, c])
      let refused = results.filter { $0.code == .waitCycle }
      #expect(refused.count == 1)
      for name in ["Alpha", "Beta", "Gamma"] { #expect(refused.first?.message.contains(name) == true) }
      #expect(results.filter { (try? $0.get()) != nil }.count == 2)
    }
    #expect(try await a.run { 1 } + b.run { 2 } + c.run { 3 } == 6)
  }

  @Test func theLaterOneIsRefused() async {
    let (a, b) = (a, b)
    let later = Journal<OperationError.Code?>()
    let earlier = Journal<OperationError.Code?>()
    let bHasBegun = Gate()
    let aWaits = Gate()
    b.schedule {
      bHasBegun.open()
      aWaits.pass()
      // What A waits for is in line by now.
      while b.statistics.eventsQueued == 0 {}
      later.write(Result { try a.wait { "a" } }.code)
    }
    await bHasBegun.opened()
    a.schedule {
      aWaits.open()
      earlier.write(Result { try b.wait { "b" } }.code)
    }
    await later.reaches(1)
    await earlier.reaches(1)
    #expect(later.entries == [.waitCycle])
    #expect(earlier.entries == [nil])
  }

  @Test func whoIsRefusedMayGoOnAndTryAgain() async {
    let (a, b) = (a, b)
    let begun = Journal<String>()
    let all = Gate()
    let done = Journal<String>()
    for (own, other) in [(a, b), (b, a)] {
      own.schedule {
        begun.write(own.name)
        all.pass()
        let result = Result { try other.wait { "served" } }
        if result.code == .waitCycle {
          // Not blocking.
          other.schedule { done.write("sent instead") }
        } else {
          done.write("served")
        }
      }
    }
    await begun.reaches(2)
    all.open()
    await done.reaches(2)
    #expect(Set(done.entries) == ["served", "sent instead"])
  }

  @Test func aWaitThatComesBackToAnActorInItsJobIsRefused() async throws {
    let (a, b) = (a, b)
    let result = await Notes(on: a).perform {
      Result { try b.wait { try a.wait { "inner" } } }
    }
    #expect(result.code == .waitCycle)
    #expect(result.message.contains("Alpha") && result.message.contains("Beta"))
    // The wait itself is allowed.
    #expect(try await Notes(on: a).perform { try b.wait { 1 } } == 1)
    #expect(try await a.run { 1 } + b.run { 2 } == 3)
  }

  @Test func aWaitThatComesBackToATaskOfTheSchedulerIsRefused() async throws {
    let (a, b) = (a, b)
    let waiting: @Sendable () -> Result<String, any Error> = { Result { try b.wait { try a.wait { "inner" } } } }
    let result = await Task(executorPreference: a) { waiting() }.value
    #expect(result.code == .waitCycle)
  }

  @Test func aWaitThatComesBackToTheMainActorInItsJobIsRefused() async throws {
    let a = a
    let result = await MainActor.run { Result { try a.wait { try SerialScheduler.main.wait { 1 } } } }
    #expect(result.code == .waitCycle)
    #expect(result.message.contains("Alpha") && result.message.contains("main"))
  }

  @Test func throughTwoOthersItIsRefusedToo() async {
    let (a, b, c) = (a, b, c)
    let result = await Notes(on: a).perform {
      Result { try b.wait { try c.wait { try a.wait { "inner" } } } }
    }
    #expect(result.code == .waitCycle)
    for name in ["Alpha", "Beta", "Gamma"] { #expect(result.message.contains(name)) }
  }

  @Test func theOneInTheMiddleMayHandleIt() async {
    let (a, b) = (a, b)
    let text = await Notes(on: a).perform {
      try? b.wait { (try? a.wait { "inner" }) ?? "without" }
    }
    #expect(text == "without")
  }

  @Test func aJobMayWaitForANeighbourThatComesBackToTheNeighbourOnly() async throws {
    let (a, b, c) = (a, b, c)
    let text = try await Notes(on: a).perform {
      try b.wait { try "b" + c.wait { try "c" + b.wait { "b" } } }
    }
    #expect(text == "bcb")
  }

  @Test func aChainThatCrossesAnotherIsNotServedForever() async {
    // A waits for B, which waits for C, while C waits for A.
    let (a, b, c) = (a, b, c)
    let begun = Journal<Int>()
    let all = Gate()
    let results = Journal<Result<String, any Error>>()
    a.schedule {
      begun.write(1)
      all.pass()
      results.write(Result { try b.wait { try c.wait { "from A" } } })
    }
    c.schedule {
      begun.write(2)
      all.pass()
      results.write(Result { try a.wait { "from C" } })
    }
    await begun.reaches(2)
    all.open()
    await results.reaches(2)
    #expect(results.entries.filter { $0.code == .waitCycle }.count == 1)
    #expect(results.entries.filter { (try? $0.get()) != nil }.count == 1)
  }

  @Test func manyWaitsAmongManyAllEnd() async throws {
    let schedulers = (0..<5).map { SerialScheduler(name: "S\($0)") }
    let ended = Journal<OperationError.Code?>()
    await onThreads(4) { thread in
      var generator = SeededGenerator(seed: UInt64(thread + 1))
      for _ in 0..<500 {
        let path = (0..<4).map { _ in schedulers.randomElement(using: &generator)! }
        path[0].schedule {
          ended.write(Result { try path[1].wait { try path[2].wait { try path[3].wait { 1 } } } }.code)
        }
      }
    }
    await ended.reaches(2000)
    #expect(ended.entries.allSatisfy { $0 == nil || $0 == .waitCycle })
    for scheduler in schedulers { #expect(try await scheduler.run { 1 } == 1) }
  }
}
