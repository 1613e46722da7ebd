import Foundation
import OperationsTestSupport
import Soak
import Testing

@testable import Operations

/// Events, jobs, operations and waits, from several threads on several schedulers, at random.
///
/// `RANDOM_GRAPH_SEED=17 swift test --filter RandomScheduler` replays a seed.
@Suite(.timeLimit(.minutes(5)))
struct RandomSchedulerTests {
  private typealias Counter = Locked<Int>

  /// What lives on a scheduler. Its state has no lock: the thread sanitizer sees whether the scheduler is one.
  private final class Home: Schedulable, @unchecked Sendable {
    let scheduler: SerialScheduler
    private let token: LiveCount.Token
    private var isInside = false
    private var last: [Int: Int] = [:]
    private(set) var violations: [String] = []
    private(set) var visits = 0

    init(_ name: String, _ live: LiveCount) {
      scheduler = SerialScheduler(name: name)
      token = LiveCount.Token(live)
    }

    /// - Parameter number: The place among the visits of the producer, or nil if they have no order.
    func visit(_ producer: Int, _ number: Int?) {
      if !scheduler.isCurrent { violations.append("not current") }
      if isInside { violations.append("two at once") }
      isInside = true
      visits += 1
      if let number {
        let expected = last[producer, default: 0] + 1
        if number != expected { violations.append("\(producer): \(number) instead of \(expected)") }
        last[producer] = number
      }
      isInside = false
    }
  }

  /// A thread that schedules.
  private struct Producer {
    /// A serial queue gets a thread even if those of the pool are blocked.
    private static let elsewhere = DispatchQueue(label: "elsewhere")

    let number: Int
    let homes: [Home]
    let expected: Counter
    var generator: SeededGenerator
    var numbers: [Int: Int] = [:]

    mutating func run() { for _ in 0..<60 { step() } }

    private mutating func step() {
      let index = Int.random(in: homes.indices, using: &generator)
      let home = homes[index]
      let producer = number
      let number = numbers[index, default: 0] + 1
      numbers[index] = number
      expected.withLock { $0 += 1 }
      switch Int.random(in: 0..<12, using: &generator) {
      case 0: home.scheduler.queue.addOperation { home.visit(producer, number) }
      case 1:
        home.scheduler.queue.addOperations([BlockOperation { home.visit(producer, number) }], waitUntilFinished: false)
      case 2:
        // A task reaches its executor on its own, at any time, so its order is not that of its creator.
        numbers[index] = number - 1
        Task(executorPreference: home.scheduler) {
          home.visit(producer, nil)
          await Task.yield()
        }
      case 3:
        let others = (0..<Int.random(in: 1...4, using: &generator)).map { _ in homes.randomElement(using: &generator)! }
        let expected = expected
        try? home.wait { home in
          home.visit(producer, number)
          Self.visit(others[...], producer, expected)
        }
      case 4, 5:
        let (endsElsewhere, hasCondition) = (Bool.random(using: &generator), Bool.random(using: &generator))
        let operation = AsyncBlockOperation { operation in
          home.visit(producer, number)
          if endsElsewhere { Self.elsewhere.async { operation.finish() } } else { operation.finish() }
        }
        if hasCondition { operation.addCondition(OperationCondition(name: "met") { _ in await Task.yield() }) }
        home.scheduler.queue.addOperation(operation)
      case 6:
        // Each attempt is made on the scheduler, and the last one is the visit that counts.
        let pause = [Duration.zero, .microseconds(200)].randomElement(using: &generator)!
        let count = Int.random(in: 1...3, using: &generator)
        expected.withLock { $0 += count - 1 }
        let operation = RetryOperation<Int>(attempts: count, backoff: .constant(pause)) { attempt in
          home.visit(producer, attempt == count ? number : nil)
          if attempt < count { throw TestError("busy") }
          return ResultOperation { attempt }
        }
        home.scheduler.queue.addOperation(operation)
      default: home.schedule { $0.visit(producer, number) }
      }
      if number.isMultiple(of: 7) {
        home.scheduler.isSuspended.toggle()
        home.scheduler.isSuspended = false
      }
    }

    /// From one to the next, each waiting for the one it leads to. Waits that would never end are refused.
    private static func visit(_ homes: ArraySlice<Home>, _ producer: Int, _ expected: Counter) {
      guard let home = homes.first else { return }
      expected.withLock { $0 += 1 }
      do {
        try home.wait { home in
          home.visit(producer, nil)
          visit(homes.dropFirst(), producer, expected)
        }
      } catch OperationError.Code.waitCycle {
        expected.withLock { $0 -= 1 }
      } catch {
        Issue.record(error)
      }
    }
  }

  @Test(arguments: SeededGenerator.seeds)
  func eventsOfEveryKind_runOnceInOrderAndAlone(seed: UInt64) async throws {
    let live = LiveCount()
    do {
      let homes = (0..<3).map { Home("\($0)", live) }
      let expected = Locked(0)
      // Not on threads of the pool: there conditions and attempts would wait behind producers that wait for them.
      await withTaskGroup { group in
        for number in 0..<4 {
          let generator = SeededGenerator(seed: seed &* 4 &+ UInt64(number))
          group.addTask {
            _ = await onThread {
              var producer = Producer(number: number, homes: homes, expected: expected, generator: generator)
              producer.run()
            }
          }
        }
      }
      var visits = 0
      for home in homes {
        await home.scheduler.queue.finished()
        await home.scheduler.drained()
        visits += try await home.run { $0.visits }
        for violation in try await home.run({ $0.violations }) { Issue.record("\(violation)") }
        #expect(home.scheduler.statistics.eventsQueued == 0)
        #expect(home.scheduler.statistics.jobsQueued == 0)
      }
      #expect(visits == expected.withLock { $0 })
      #expect(WaitGraph.shared.withLock { graph in homes.allSatisfy { graph.waits(of: $0.scheduler).isEmpty } })
    }
    await live.none()
  }

  @Test(arguments: SeededGenerator.seeds)
  func capacityAndShutdown_tellEveryCallerTheOutcome(seed: UInt64) async throws {
    var generator = SeededGenerator(seed: seed)
    let policy = EventCapacity.Policy.allCases.randomElement(using: &generator)!
    let count = Int.random(in: 1...4, using: &generator)
    let scheduler = SerialScheduler(name: "full", capacity: EventCapacity(count, whenFull: policy))
    let mode: SerialScheduler.ShutdownMode? = [nil, .drain, .discard].randomElement(using: &generator)!
    let (ran, promised) = (Counter(0), Counter(0))
    await withTaskGroup { group in
      for _ in 0..<60 {
        let choice = Int.random(in: 0..<8, using: &generator)
        let isCancelled = Int.random(in: 0..<5, using: &generator) == 0
        group.addTask {
          await withTaskGroup { inner in
            inner.addTask { await Self.post(choice, scheduler, ran, promised) }
            if isCancelled { inner.cancelAll() }
          }
        }
      }
      if let mode { group.addTask { scheduler.shutDown(mode) } }
    }
    await scheduler.drained()
    let (events, promises) = (ran.withLock { $0 }, promised.withLock { $0 })
    #expect(events == promises || mode == .discard || policy != .suspend && policy != .fail)
    #expect(events <= promises)
    #expect(scheduler.statistics.eventsQueued == 0)
    #expect(scheduler.statistics.eventsRun == events)
  }

  /// Counts what has been promised, which is what was accepted, and what has run.
  private static func post(_ choice: Int, _ scheduler: SerialScheduler, _ ran: Counter, _ promised: Counter) async {
    do {
      switch choice {
      case 0...3: try await scheduler.run { ran.withLock { $0 += 1 } }
      case 4, 5: try await scheduler.send { ran.withLock { $0 += 1 } }
      default: if !scheduler.schedule({ ran.withLock { $0 += 1 } }) { return }
      }
      promised.withLock { $0 += 1 }
    } catch OperationError.Code.shutDown, OperationError.Code.overflow {
    } catch is CancellationError {
    } catch {
      Issue.record(error)
    }
  }
}
