import Foundation
import OperationsTestSupport
import Testing

@testable import Operations

/// What the drain does between events.
@Suite(.timeLimit(.minutes(5)))
struct DrainTests {
  private let scheduler = SerialScheduler(name: "line")
  private let journal = Journal<String>()

  /// An operation that does something when Foundation asks whether it is ready.
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
    let (scheduler, journal) = (scheduler, journal)
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
    let (scheduler, journal) = (scheduler, journal)
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

  @Test func longEventsLeaveTheThreadToOthersAndKeepTheirPlace() async {
    let (scheduler, journal) = (scheduler, journal)
    let end = await scheduler.held()
    for number in 0..<3 {
      scheduler.schedule { work(for: .milliseconds(11)) }
      for _ in 0..<40 { scheduler.schedule {} }
      scheduler.schedule { journal.write("event \(number)") }
      scheduler.queue.addOperation { journal.write("operation \(number)") }
    }
    end.open()
    await scheduler.drained()
    #expect(journal.entries == (0..<3).flatMap { ["event \($0)", "operation \($0)"] })
  }

  @Test func eventsForTheSameTimeKeepTheirOrderWhileOthersAreScheduled() async {
    let scheduler = scheduler
    let numbers = Journal<Int>()
    for number in 0..<3000 { scheduler.schedule(after: .microseconds(300)) { numbers.write(number) } }
    await numbers.reaches(3000)
    #expect(numbers.entries == Array(0..<3000))
  }

  @Test func changedQualityOfServiceIsThatOfTheNextDrain() async throws {
    let scheduler = SerialScheduler(name: "quality", qualityOfService: .utility)
    #expect(scheduler.qualityOfService == .utility)
    scheduler.qualityOfService = .userInitiated
    #expect(scheduler.qualityOfService == .userInitiated)
    scheduler.isSuspended = true
    scheduler.schedule {}
    #expect(scheduler.queue.operations.map(\.qualityOfService) == [.userInitiated])
    scheduler.isSuspended = false
    await scheduler.drained()
  }
}
