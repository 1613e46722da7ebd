import Foundation
import Operations
import OperationsTestSupport
import Soak
import Testing

@Suite(.timeLimit(.minutes(5)))
struct RepeatOperationTests {
  private let queue = OperationQueue()
  private let clock = ManualClock()
  private let journal = Journal<String>()

  private func note(_ iteration: Int) -> NoteOperation { NoteOperation("\(iteration)", journal) }

  @Test func itRunsOneAfterAnotherUntilThereIsNoNextOne() async throws {
    let polling = RepeatOperation { $0 <= 3 ? note($0) : nil }
    try await queue.run(polling)
    #expect(journal.entries == ["1", "2", "3"] && polling.isSuccessful)
    try await queue.run(RepeatOperation { _ in nil })
  }

  @Test func theFirstFailureEndsIt() async {
    let polling = RepeatOperation { number in
      NoteOperation("\(number)", journal, failing: number == 2 ? TestError("two") : nil)
    }
    await #expect(throws: TestError("two")) { try await queue.run(polling) }
    #expect(journal.entries == ["1", "2"] && !polling.isCancelled && polling.errors.count == 1)
  }

  @Test func anyOperationWillDoAGroupIncluded() async {
    let polling = RepeatOperation { number in
      GroupOperation("round") {
        note(number)
        ResultOperation { if number == 2 { throw TestError("in a group") } }
      }
    }
    let error = await #expect(throws: AggregateError.self) { try await queue.run(polling) }
    #expect(error?.errors(of: TestError.self) == [TestError("in a group")])
    #expect(journal.entries == ["1", "2"])
  }

  @Test func anIterationBringsAlongWhatItWaitsFor() async throws {
    let polling = RepeatOperation { number in
      number > 2 ? nil : NoteOperation("before \(number)", journal) ==> note(number)
    }
    try await queue.run(polling)
    #expect(journal.entries == ["before 1", "1", "before 2", "2"])
  }

  @Test func manyIterationsDoNotNestAndLeaveNothing() async throws {
    let live = LiveCount()
    final class Counted: AsyncOperation, @unchecked Sendable {
      let token: LiveCount.Token
      init(_ live: LiveCount) {
        token = LiveCount.Token(live)
        super.init()
      }
    }
    do {
      let polling = RepeatOperation { number in
        // The one that has just ended, and this one.
        if live.alive > 64 { Issue.record("\(live.alive) are alive") }
        return number <= (isThorough ? 5000 : 1000) ? Counted(live) : nil
      }
      try await queue.run(polling)
    }
    await live.none()
  }
}
