import Foundation
import Operations
import OperationsTestSupport
import Testing

/// Schedulers that wait for each other. Waits that could never end are refused.
@Suite(.timeLimit(.minutes(5)))
struct WaitCycleTests {
  private let a = SerialScheduler(name: "Alpha")
  private let b = SerialScheduler(name: "Bravo")
  private let c = SerialScheduler(name: "Charlie")
  private let journal = Journal<String>()

  /// Returns the schedulers with these initials.
  private func schedulers(_ path: String) -> ArraySlice<SerialScheduler> {
    path.compactMap { initial in [a, b, c].first { $0.name.first == initial } }[...]
  }

  /// Goes from one scheduler to the next, each waiting for the rest of the path, and returns their initials.
  private func visit(_ path: ArraySlice<SerialScheduler>) throws -> String {
    guard let next = path.first else { return "" }
    return try next.wait { try next.name.prefix(1) + visit(path.dropFirst()) }
  }

  private func visit(_ path: String) throws -> String { try visit(schedulers(path)) }

  // MARK: Served

  @Test(arguments: ["BA", "BCA", "BABA", "BCBABCA"])
  func aChainThatComesBackIsServed(path: String) async throws {
    #expect(try await a.run { try visit(path) } == path)
    #expect(try await onThread { try a.wait { try visit(path) } }.get() == path)
    a.queue.addOperation { journal.write((try? visit(path)) ?? "failed") }
    await journal.reaches(1)
    #expect(journal.entries == [path])
    #expect(try await SerialScheduler.main.run { try b.wait { try SerialScheduler.main.wait { "main" } } } == "main")
  }

  @Test func nothingUnrelatedRunsInTheMiddle() async throws {
    let notes = Notes(on: a, journal)
    let other = Gate()
    let end = await a.held()
    a.schedule {
      journal.write("begin")
      try? b.wait {
        // These reach A, in every way that there is, while it waits.
        a.schedule { journal.write("event") }
        a.queue.addOperation { journal.write("operation") }
        immediately { await notes.note("job") }
        Thread.detachNewThread {
          other.open()
          try? a.wait { journal.write("other wait") }
        }
        other.pass()
        try? a.wait { journal.write("inner") }
        try? a.wait { journal.write("inner again") }
      }
      journal.write("end")
    }
    a.schedule { journal.write("earlier event") }
    end.open()
    await journal.reaches(9)
    #expect(journal.entries.prefix(5) == ["begin", "inner", "inner again", "end", "earlier event"])
    #expect(journal.entries.filter { ["event", "operation", "job"].contains($0) } == ["event", "operation", "job"])
    #expect(journal.entries.contains("other wait"))
  }

  @Test func aJobMayWaitForOthersThatComeBackToEachOther() async throws {
    #expect(try await Notes(on: a).perform { try visit("BCB") } == "BCB")
    #expect(await Notes(on: a).perform { try? b.wait { (try? a.wait { "inner" }) ?? "without" } } == "without")
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
        results.write(Result { try visit(schedulers(path).dropFirst()) })
      }
    }
    await begun.reaches(paths.count)
    all.open()
    await results.reaches(paths.count)
    return results.entries
  }

  @Test(arguments: [["AB", "BA"], ["AB", "BC", "CA"], ["ABC", "CA"]])
  func ofWaitsThatCrossExactlyOneIsRefused(paths: [String]) async {
    for _ in 0..<100 {
      let results = await cross(paths)
      let refused = results.filter { $0.code == .waitCycle }
      #expect(refused.count == 1)
      #expect(results.count { (try? $0.get()) != nil } == paths.count - 1)
      for scheduler in schedulers(paths.joined()) {
        #expect(refused.first?.message.contains(scheduler.name) == true)
      }
    }
  }

  @Test func theLaterOneIsRefused() async {
    let (bHasBegun, aWaits) = (Gate(), Gate())
    b.schedule {
      bHasBegun.open()
      aWaits.pass()
      // The body that A waits for is in the mailbox of B when this loop ends.
      while b.statistics.eventsQueued == 0 {}
      let result = Result { try a.wait {} }
      journal.write("later \(result.code == .waitCycle ? "refused" : "served")")
    }
    await bHasBegun.opened()
    a.schedule {
      aWaits.open()
      let result = Result { try b.wait {} }
      journal.write("earlier \(result.code == nil ? "served" : "refused")")
    }
    await journal.reaches(2)
    #expect(Set(journal.entries) == ["later refused", "earlier served"])
  }

  @Test func aWaitThatComesBackToAJobIsRefused() async throws {
    let main = await MainActor.run { Result { try a.wait { try SerialScheduler.main.wait { "main" } } } }
    #expect(main.code == .waitCycle && main.message.contains("Alpha") && main.message.contains("main"))
    let results = [
      await Notes(on: a).perform { Result { try visit("BA") } },
      await Task(executorPreference: a) { Result { try visit("BA") } }.value,
      await Notes(on: a).perform { Result { try visit("BCA") } },
    ]
    for result in results {
      #expect(result.code == .waitCycle && result.message.contains("Alpha") && result.message.contains("Bravo"))
    }
    #expect(results[2].message.contains("Charlie"))
    #expect(try await a.run { 1 } + b.run { 2 } == 3)
  }

  #if !os(iOS) && !os(tvOS) && !os(watchOS) && !os(visionOS)
  /// Runs in its own process, because a wait that hangs would block every other wait.
  @Test func waitsFromOutsideAChainAreServedAfterIt() async {
    await #expect(processExitsWith: .success) {
      DispatchQueue.global().asyncAfter(deadline: .now() + 20) { fatalError("A wait hangs.") }
      let (a, b, c) = (SerialScheduler(name: "a"), SerialScheduler(name: "b"), SerialScheduler(name: "c"))
      let (inside, end, isWaiting) = (Gate(), Gate(), Gate())
      a.schedule {
        try? b.wait {
          try a.wait {
            inside.open()
            end.pass()
          }
        }
      }
      await inside.opened()
      async let late = onThread {
        isWaiting.open()
        return try a.wait { "late" }
      }
      await isWaiting.opened()
      let fromThread = await onThread { try a.wait(timeout: .milliseconds(50)) {} }
      precondition(fromThread.code == .timedOut)
      let codes = try await c.run {
        [a, b].map { scheduler in Result { try scheduler.wait(timeout: .milliseconds(50)) {} }.code }
      }
      precondition(codes == [.timedOut, .timedOut])
      let elsewhere = SerialScheduler(name: "elsewhere")
      let values = try await onThread { try (0..<100).map { index in try elsewhere.wait { index } } }.get()
      precondition(values == Array(0..<100))
      end.open()
      let served = (try await late.get(), try await c.run { try a.wait { "again" } })
      precondition(served == ("late", "again"))
    }
  }
  #endif
}
