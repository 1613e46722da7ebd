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
