import Foundation
import OperationsTestSupport
import Testing

@testable import Operations

/// The queue of a scheduler, and the operations in it that drain the mailbox.
@Suite(.timeLimit(.minutes(5)))
struct SchedulerQueueTests {
  private let scheduler = SerialScheduler(name: "line", qualityOfService: .utility)
  private let journal = Journal<String>()

  @Test func cancelAllOperationsLosesNoEvent() async throws {
    let end = await scheduler.held()
    scheduler.schedule {
      scheduler.queue.cancelAllOperations()
      // The drain leaves the rest to another drain.
      work(for: .milliseconds(20))
    }
    let operations = (0..<10).map { plain("operation \($0)", journal) }
    for index in 0..<100 { scheduler.schedule { journal.write("\(index)") } }
    for operation in operations {
      scheduler.queue.addOperation(operation as Operation)
      scheduler.schedule { journal.write("behind") }
    }
    let notes = Notes(on: scheduler, journal)
    let job = immediately { await notes.note("job") }
    try await job.value(opening: end)
    #expect(journal.entries == (0..<100).map(String.init) + Array(repeating: "behind", count: 10) + ["job"])
    #expect(operations.allSatisfy { $0.isCancelled })
  }

  @Test func nameQualityOfServiceAndLimit_areThoseOfTheQueue() {
    // The limit can be set again.
    scheduler.queue.maxConcurrentOperationCount = 1
    for scheduler in [scheduler, .main] { #expect(scheduler.queue.maxConcurrentOperationCount == 1) }
    #expect(scheduler.name == "line" && scheduler.queue.name == "line")
    #expect(scheduler.qualityOfService == .utility && scheduler.queue.qualityOfService == .utility)
    #expect(SerialScheduler(name: "plain").qualityOfService == .default)
  }

  @Test func changedQualityOfServiceIsThatOfTheNextDrain() async {
    scheduler.qualityOfService = .userInitiated
    #expect(scheduler.queue.qualityOfService == .userInitiated)
    scheduler.isSuspended = true
    scheduler.schedule {}
    #expect(scheduler.queue.operations.map(\.qualityOfService) == [.userInitiated])
    scheduler.isSuspended = false
    await scheduler.drained()
  }

  // MARK: Draining

  /// Becomes ready, without a notification, when Foundation reads `isReady` for the first time after `becomeReady`.
  private final class ReluctantOperation: Operation, @unchecked Sendable {
    private let isAllowed = Locked<@Sendable () -> Bool>({ false })
    private let body: @Sendable () -> Void

    init(_ body: @escaping @Sendable () -> Void = {}) { self.body = body }

    override var isReady: Bool { isAllowed.withLock { $0 }() && super.isReady }

    override func main() { body() }

    /// - Parameter hook: Called when Foundation reads `isReady`.
    func becomeReady(_ hook: @escaping @Sendable () -> Void) {
      isAllowed.withLock { isAllowed in
        isAllowed = { [weak self] in
          self?.isAllowed.withLock { $0 = { true } }
          hook()
          return true
        }
      }
    }
  }

  @Test func whileSuspendedEverythingIsAcceptedAndNothingRuns() async throws {
    scheduler.isSuspended = true
    scheduler.schedule {
      scheduler.queue.isSuspended = true
      journal.write("suspending")
    }
    for number in 0..<100 { #expect(scheduler.schedule { journal.write("\(number)") }) }
    scheduler.queue.addOperation { journal.write("operation") }
    #expect(scheduler.isSuspended && scheduler.queue.isSuspended)
    #expect(scheduler.statistics.eventsQueued == 101 && journal.entries.isEmpty)
    scheduler.isSuspended = false
    await journal.reaches(1)
    // The rest has been put back into the queue when the operation that ran it has finished.
    for operation in scheduler.queue.operations where operation.isExecuting { await operation.finished() }
    #expect(journal.entries == ["suspending"])
    #expect(scheduler.statistics.eventsQueued == 100)
    scheduler.isSuspended = false
    await scheduler.drained()
    #expect(journal.entries == ["suspending"] + (0..<100).map(String.init) + ["operation"])
  }

  @Test func eventScheduledWhileAnOperationIsAdded_precedesTheOperation() async {
    scheduler.isSuspended = true
    scheduler.schedule { journal.write("before") }
    let operation = ReluctantOperation { journal.write("operation") }
    operation.becomeReady { scheduler.schedule { journal.write("meanwhile") } }
    scheduler.queue.addOperation(operation)
    scheduler.schedule { journal.write("after") }
    scheduler.isSuspended = false
    await scheduler.drained()
    #expect(journal.entries == ["before", "meanwhile", "operation", "after"])
  }

  @Test func whileItIsResumed_anotherThreadCanSchedule() async throws {
    let (operation, outcomes) = (ReluctantOperation(), Journal<Bool>())
    scheduler.isSuspended = true
    scheduler.queue.addOperation(operation)
    operation.becomeReady {
      let scheduled = DispatchSemaphore(value: 0)
      DispatchQueue(label: "another thread").async {
        scheduler.schedule { journal.write("event") }
        scheduled.signal()
      }
      outcomes.write(scheduled.wait(timeout: .now() + 10) == .success)
    }
    // Foundation on Linux reads `isReady` here, because the operation has no dependencies.
    try await onThread { scheduler.isSuspended = false }.get()
    operation.didChangeValue(forKey: "isReady")
    await operation.finished()
    await scheduler.drained()
    #expect(outcomes.entries == [true] && journal.entries == ["event"])
  }

  @Test func suspendedAndResumedByTwoThreads_itAgreesWithItsQueue() async throws {
    let (arrivals, isAgreed) = (Locked(0), Journal<Bool>())
    @Sendable func set(_ isSuspended: Bool) {
      for round in 1...10_000 {
        // Both threads begin a round at the same moment.
        arrivals.withLock { $0 += 1 }
        while arrivals.withLock({ $0 }) < round * 2 { sched_yield() }
        if round.isMultiple(of: 2) {
          isAgreed.write(scheduler.mode.contains(.suspended) == scheduler.queue.isSuspended)
        } else {
          scheduler.isSuspended = isSuspended
        }
      }
    }
    async let suspending: Void = onThread { set(true) }.get()
    async let resuming: Void = onThread { set(false) }.get()
    try await suspending
    try await resuming
    #expect(isAgreed.entries.allSatisfy { $0 })
    scheduler.isSuspended = false
    await scheduler.drained()
  }
}
