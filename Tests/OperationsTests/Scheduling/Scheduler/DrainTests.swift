import Foundation
import OperationsTestSupport
import Testing

@testable import Operations

/// What the drain does between events.
@Suite(.timeLimit(.minutes(5)))
struct DrainTests {
  private let scheduler = SerialScheduler(name: "line")
  private let journal = Journal<String>()

  /// Calls a closure when Foundation first reads whether the operation is ready.
  private final class CuriousOperation: Operation, @unchecked Sendable {
    private let hook: @Sendable () -> Void
    private let body: @Sendable () -> Void
    private let isAsked = Locked(false)

    init(whenAsked hook: @escaping @Sendable () -> Void, _ body: @escaping @Sendable () -> Void) {
      self.hook = hook
      self.body = body
    }

    override var isReady: Bool {
      let isFirst = isAsked.withLock { isAsked in
        defer { isAsked = true }
        return !isAsked
      }
      if isFirst { hook() }
      return super.isReady
    }

    override func main() { body() }
  }

  @Test func suspendingStopsItAfterTheEventThatIsBeingRun() async throws {
    let suspended = Gate()
    scheduler.isSuspended = true
    scheduler.schedule {
      scheduler.isSuspended = true
      journal.write("suspending")
      suspended.open()
    }
    for number in 0..<100 { scheduler.schedule { journal.write("\(number)") } }
    scheduler.queue.addOperation { journal.write("operation") }
    scheduler.isSuspended = false
    await suspended.opened()
    // The rest has been put back into the queue when the operation that ran it has finished.
    for operation in scheduler.queue.operations where operation.isExecuting { await operation.finished() }
    #expect(journal.entries == ["suspending"])
    #expect(scheduler.statistics.eventsQueued == 100)
    scheduler.isSuspended = false
    await scheduler.drained()
    #expect(journal.entries == ["suspending"] + (0..<100).map(String.init) + ["operation"])
  }

  @Test func whatAnOperationSchedulesWhileItIsAddedIsInFrontOfItAndWhatComesThenBehind() async {
    scheduler.isSuspended = true
    scheduler.schedule { journal.write("before") }
    scheduler.queue.addOperation(
      CuriousOperation(whenAsked: { scheduler.schedule { journal.write("meanwhile") } }) { journal.write("operation") }
    )
    scheduler.schedule { journal.write("after") }
    scheduler.isSuspended = false
    await scheduler.drained()
    #expect(journal.entries == ["before", "meanwhile", "operation", "after"])
  }

  @Test func eventsForTheSameTimeKeepTheirOrderWhileOthersAreScheduled() async {
    let numbers = Journal<Int>()
    for number in 0..<3000 { scheduler.schedule(after: .microseconds(300)) { numbers.write(number) } }
    await numbers.reaches(3000)
    #expect(numbers.entries == Array(0..<3000))
  }

  @Test func theMainThreadGetsItsTurnBetweenEventsOfALongBurst() async {
    SerialScheduler.main.schedule {
      // This follows the current event, and precedes what is left of the burst after some milliseconds.
      DispatchQueue.main.async { journal.write("frame") }
      for index in 0..<100 {
        SerialScheduler.main.schedule {
          work(for: .milliseconds(1))
          journal.write("\(index)")
        }
      }
    }
    await journal.reaches(101)
    let frame = journal.entries.firstIndex(of: "frame")!
    #expect(frame < 40, "\(frame)")
    #expect(journal.entries.filter { $0 != "frame" } == (0..<100).map(String.init))
  }
}

extension SerialScheduler {
  /// Opens a gate that holds the scheduler, and waits until everything that was scheduled has run.
  func drained(afterOpening gate: Gate) async {
    gate.open()
    await drained()
  }
}
