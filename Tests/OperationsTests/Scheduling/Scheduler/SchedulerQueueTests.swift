import Foundation
import Operations
import OperationsTestSupport
import Testing

/// What may be done to the queue of a scheduler.
@Suite(.timeLimit(.minutes(5)))
struct SchedulerQueueTests {
  private let scheduler = SerialScheduler(name: "line", qualityOfService: .utility)
  private let journal = Journal<String>()

  @Test func oneAtATimeMayBeSaidAgain() {
    scheduler.queue.maxConcurrentOperationCount = 1
    #expect(scheduler.queue.maxConcurrentOperationCount == 1)
    #expect(SerialScheduler.main.queue.maxConcurrentOperationCount == 1)
  }

  @Test func cancelAllOperationsLosesNoEvent() async {
    let end = await scheduler.held()
    let operations = (0..<10).map { plain("operation \($0)", journal) }
    for index in 0..<100 {
      scheduler.schedule { journal.write("\(index)") }
      if index % 10 == 0 { scheduler.queue.addOperation(operations[index / 10] as Operation) }
    }
    let notes = Notes(on: scheduler, journal)
    let job = immediately { await notes.note("job") }
    scheduler.queue.cancelAllOperations()
    end.open()
    try? await job.value
    #expect(journal.entries == (0..<100).map(String.init) + ["job"])
    #expect(operations.allSatisfy { $0.isCancelled })
  }

  @Test func cancelAllOperationsAtAnyMomentLosesNoEvent() async {
    await onThreads(3) { thread in
      for index in 0..<3000 {
        if thread < 2 { scheduler.schedule { journal.write("\(thread).\(index)") } }
        if thread == 2, index % 30 == 0 {
          scheduler.queue.addOperation {}
          scheduler.queue.cancelAllOperations()
        }
      }
    }
    await journal.reaches(6000)
    await scheduler.drained()
    for thread in 0..<2 {
      let own = journal.entries.filter { $0.hasPrefix("\(thread).") }
      #expect(own == (0..<3000).map { "\(thread).\($0)" })
    }
  }

  @Test func anEventThatCancelsAllOperationsLosesNoneBehindIt() async {
    let end = await scheduler.held()
    scheduler.schedule {
      scheduler.queue.cancelAllOperations()
      // The rest has to be queued anew.
      work(for: .milliseconds(20))
    }
    for index in 0..<200 { scheduler.schedule { journal.write("\(index)") } }
    end.open()
    await journal.reaches(200)
    #expect(journal.entries == (0..<200).map(String.init))
  }

  @Test func whileSuspendedEverythingIsAcceptedAndNothingRuns() async throws {
    scheduler.isSuspended = true
    #expect(scheduler.isSuspended && scheduler.queue.isSuspended)
    for index in 0..<100 { #expect(scheduler.schedule { journal.write("\(index)") }) }
    scheduler.queue.addOperation { journal.write("operation") }
    #expect(scheduler.schedule { journal.write("last") })
    // Time for another scheduler to do as much.
    let neighbour = SerialScheduler(name: "neighbour")
    for _ in 0..<100 { try await neighbour.run {} }
    #expect(journal.entries.isEmpty)
    #expect(scheduler.statistics.eventsQueued == 101)
    scheduler.isSuspended = false
    await journal.reaches(102)
    #expect(journal.entries == (0..<100).map(String.init) + ["operation", "last"])
  }

  @Test func theNameAndTheQualityOfServiceAreTheQueues() async throws {
    #expect(scheduler.name == "line" && scheduler.queue.name == "line")
    #expect(SerialScheduler(name: "plain").qualityOfService == .default)
    for quality in [QualityOfService.userInteractive, .background, .default] {
      let scheduler = SerialScheduler(name: "some", qualityOfService: quality)
      #expect(scheduler.qualityOfService == quality && scheduler.queue.qualityOfService == quality)
      #expect(try await scheduler.run { 7 } == 7)
    }
  }

  @Test func changedQualityOfServiceIsThatOfTheNextDrain() async throws {
    #expect(scheduler.qualityOfService == .utility)
    scheduler.qualityOfService = .userInitiated
    #expect(scheduler.qualityOfService == .userInitiated && scheduler.queue.qualityOfService == .userInitiated)
    scheduler.isSuspended = true
    scheduler.schedule {}
    #expect(scheduler.queue.operations.map(\.qualityOfService) == [.userInitiated])
    scheduler.isSuspended = false
    await scheduler.drained()
  }
}
