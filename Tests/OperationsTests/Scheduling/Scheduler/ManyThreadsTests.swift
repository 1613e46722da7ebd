import Foundation
import Operations
import OperationsTestSupport
import Soak
import Testing

/// Whoever schedules, and however many they are.
@Suite(.timeLimit(.minutes(5)))
struct ManyThreadsTests {
  /// What came from each thread, without a lock: the scheduler has to do.
  private final class Tally: @unchecked Sendable {
    var last: [Int]
    var count = 0
    var disorder = 0
    private var isBusy = false
    private(set) var overlaps = 0

    init(threads: Int) { last = Array(repeating: -1, count: threads) }

    func note(_ index: Int, from thread: Int) {
      if isBusy { overlaps += 1 }
      isBusy = true
      defer { isBusy = false }
      if last[thread] >= index { disorder += 1 }
      last[thread] = index
      count += 1
    }
  }

  @Test func aHundredThousandEventsFromFourThreadsAllRunInEachThreadsOrder() async throws {
    let scheduler = SerialScheduler(name: "storm")
    let tally = Tally(threads: 4)
    await onThreads(4) { thread in
      for index in 0..<25_000 { scheduler.schedule { tally.note(index, from: thread) } }
    }
    let (count, disorder, overlaps) = try await scheduler.run { (tally.count, tally.disorder, tally.overlaps) }
    #expect(count == 100_000 && disorder == 0 && overlaps == 0)
  }

  @Test func everyWayInKeepsEachThreadsOrder() async {
    let scheduler = SerialScheduler(name: "mixture")
    let tally = Tally(threads: 4)
    let notes = Notes(on: scheduler)
    let all = Journal<Int>()
    await onThreads(4) { thread in
      var generator = SeededGenerator(seed: UInt64(thread))
      for index in 0..<2500 {
        let body: @Sendable () -> Void = {
          tally.note(index, from: thread)
          all.write(index)
        }
        switch Int.random(in: 0..<10, using: &generator) {
        case 0: scheduler.queue.addOperation(body)
        case 1: scheduler.queue.addOperation(BlockOperation(block: body))
        case 2: scheduler.queue.addBarrierBlock(body)
        case 3:
          scheduler.queue.addOperation(
            AsyncBlockOperation { operation in
              body()
              operation.finish()
            }
          )
        case 4: scheduler.queue.addOperations([BlockOperation(block: body)])
        case 5, 6: immediately { await notes.perform(body) }
        default: scheduler.schedule(body)
        }
      }
    }
    await all.reaches(10_000)
    let result = try? await scheduler.run { (tally.count, tally.disorder, tally.overlaps) }
    #expect(result?.0 == 10_000)
    #expect(result?.1 == 0)
    #expect(result?.2 == 0)
  }

  @Test func schedulersOfTheirOwnRunSideBySide() async {
    let first = SerialScheduler(name: "first")
    let second = SerialScheduler(name: "second")
    let gates = (Gate(), Gate())
    let journal = Journal<String>()
    first.schedule {
      gates.0.open()
      gates.1.pass()
      journal.write("first")
    }
    second.schedule {
      gates.0.pass()
      gates.1.open()
      journal.write("second")
    }
    await journal.reaches(2)
    #expect(Set(journal.entries) == ["first", "second"])
  }

  @Test func eventsThatScheduleTheNextGoOnToTheEnd() async {
    let scheduler = SerialScheduler(name: "chain")
    let done = Gate()
    @Sendable func next(_ count: Int) {
      if count == 0 { return done.open() }
      scheduler.schedule { next(count - 1) }
    }
    next(20_000)
    await done.opened()
    await scheduler.drained()
    #expect(scheduler.statistics.eventsRun == 20_000)
  }

  @Test func theMainThreadGetsItsTurnBetweenEventsOfALongBurst() async {
    let journal = Journal<String>()
    SerialScheduler.main.schedule {
      // Behind this event, and before what is left of the burst after some milliseconds.
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
