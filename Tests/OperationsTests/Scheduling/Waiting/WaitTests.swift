import Foundation
import OperationsTestSupport
import Soak
import Testing

@testable import Operations

/// A thread that blocks until a scheduler has run a body, or until the timeout. Waits that could never end are refused.
@Suite(.timeLimit(.minutes(5)))
struct WaitTests {
  private let a = SerialScheduler(name: "Alpha")
  private let b = SerialScheduler(name: "Bravo")
  private let c = SerialScheduler(name: "Charlie")
  private let results = Journal<String>()

  @Test(arguments: [nil, .seconds(50), .longest] as [Duration?])
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
    #expect(await results.all(4) == ["body", "event", "queued", "operation"])
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

  @Test(arguments: [Duration.milliseconds(20), .zero, .shortest])
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
        // A third of the waits have a timeout.
        let timeout = Int.random(in: 0..<3000, using: &generator)
        let next = SeededGenerator(seed: generator.next())
        do {
          try target.wait(timeout: timeout < 1000 ? .microseconds(timeout) : nil) {
            if timeout.isMultiple(of: 2) { work(for: .microseconds(200)) }
            wander(depth + 1, next)
          }
        } catch OperationError.Code.waitCycle, OperationError.Code.timedOut {
        } catch { Issue.record(error) }
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

  // MARK: Schedulers that wait for each other

  private func schedulers(_ path: String) -> [SerialScheduler] {
    path.compactMap { initial in [a, b, c].first { $0.name.first == initial } }
  }

  /// Goes from one scheduler to the next, each waiting for the rest of the path, and returns their initials.
  private func visit(_ path: String) throws -> String {
    guard let next = schedulers(String(path.prefix(1))).first else { return "" }
    return try next.wait { try next.name.prefix(1) + visit(String(path.dropFirst())) }
  }

  @Test(arguments: ["BA", "BCA", "BABA", "BCBABCA"])
  func aChainThatComesBackIsServed(path: String) async throws {
    #expect(try await a.run { try visit(path) } == path)
    #expect(try await onThread { try a.wait { try visit(path) } }.get() == path)
    a.queue.addOperation { results.write((try? visit(path)) ?? "failed") }
    #expect(await results.all(1) == [path])
    #expect(try await a.queue.run(ResultOperation { try visit(path) }) == path)
    #expect(try await SerialScheduler.main.run { try b.wait { try SerialScheduler.main.wait { "main" } } } == "main")
  }

  @Test func nothingUnrelatedRunsInTheMiddle() async throws {
    let notes = Notes(on: a, results)
    let other = Gate()
    let end = await a.held()
    a.schedule {
      results.write("begin")
      try? b.wait {
        // These reach A, in every way that there is, while it waits.
        a.schedule { results.write("event") }
        a.queue.addOperation { results.write("operation") }
        immediately { await notes.note("job") }
        Thread.detachNewThread {
          other.open()
          try? a.wait { results.write("other wait") }
        }
        other.pass()
        try? a.wait { results.write("inner") }
        try? a.wait { results.write("inner again") }
      }
      results.write("end")
    }
    a.schedule { results.write("earlier event") }
    end.open()
    #expect(await results.all(9).prefix(5) == ["begin", "inner", "inner again", "end", "earlier event"])
    #expect(results.entries.filter { ["event", "operation", "job"].contains($0) } == ["event", "operation", "job"])
    #expect(results.entries.contains("other wait"))
  }

  @Test func aJobMayWaitForOthersThatComeBackToEachOther() async throws {
    #expect(try await Notes(on: a).perform { try visit("BCB") } == "BCB")
  }

  // MARK: Refused

  /// Begins an event on the first scheduler of each path, and lets each wait for its rest once all have begun.
  private func cross(_ paths: [String]) async -> [Result<String, any Error>] {
    let (begun, all) = (Journal<String>(), Gate())
    let results = Journal<Result<String, any Error>>()
    for path in paths {
      schedulers(path).first?.schedule {
        begun.write(path)
        all.pass()
        results.write(Result { try visit(String(path.dropFirst())) })
      }
    }
    await begun.reaches(paths.count)
    all.open()
    await results.reaches(paths.count)
    return results.entries
  }

  @Test(arguments: [
    (["AB", "BA"], 1), (["AB", "BC", "CA"], 1), (["ABC", "CA"], 1), (["AB", "CB"], 0), (["ABA", "CA"], 0),
    (["ABA", "CBC"], 0),
  ])
  func ofWaitsThatCrossExactlyOneIsRefused_ofOthersNone(paths: [String], count: Int) async {
    for _ in 0..<100 {
      let results = await cross(paths)
      let refused = results.filter { $0.code == .waitCycle }
      #expect(refused.count == count && results.count { (try? $0.get()) != nil } == paths.count - count)
      for error in refused { #expect(schedulers(paths.joined()).allSatisfy { error.message.contains($0.name) }) }
    }
  }

  @Test func aWaitThatComesBackToAJobIsRefused() async throws {
    let main = await MainActor.run { Result { try a.wait { try SerialScheduler.main.wait { "main" } } } }
    #expect(main.code == .waitCycle && main.message.contains("Alpha") && main.message.contains("main"))
    for path in ["BA", "BCA"] {
      let results = [
        await Notes(on: a).perform { Result { try visit(path) } },
        await Task(executorPreference: a) { Result { try visit(path) } }.value,
      ]
      for result in results {
        #expect(result.code == .waitCycle && schedulers(path).allSatisfy { result.message.contains($0.name) })
      }
    }
    #expect(try await a.run { 1 } + b.run { 2 } == 3)
  }
}
