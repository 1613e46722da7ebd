import Foundation
import OperationsTestSupport
import Soak
import Testing

@testable import Operations

/// Timers on the system's clocks, even while every thread of the shared pool is blocked.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct ClockTimerTests {
  /// Runs `body` on its own thread while twenty operations block, or as many as needed.
  private func whileTwentyBlock(_ body: @escaping @Sendable () -> Void) async throws {
    let (end, queue) = (Gate(), OperationQueue())
    try await onThread {
      for _ in 0..<20 { queue.addOperation { end.pass() } }
      // They have every thread there is when a block of the pool's does not come. Other tests may have left it some.
      while true {
        let block = DispatchSemaphore(value: 0)
        DispatchQueue.global().async { block.signal() }
        if block.wait(timeout: .now() + .milliseconds(50)) == .timedOut { break }
        queue.addOperation { end.pass() }
      }
      defer { end.open() }
      body()
    }.get()
    await queue.finished()
  }

  /// A user's clock, which wakes its sleepers from its own thread.
  private struct ThreadClock: Clock {
    var now: ContinuousClock.Instant { .now }
    var minimumResolution: Duration { .zero }

    func sleep(until deadline: ContinuousClock.Instant, tolerance: Duration?) async throws {
      let seconds = ContinuousClock.now.duration(to: deadline) / .seconds(1)
      _ = await onThread { Thread.sleep(forTimeInterval: seconds) }
    }
  }

  enum Wait: CaseIterable {
    case timeout, delay, delayedEvent, delayedEventOnMain, retry, retryOnAnyThread, otherClock, suspendingClock
  }

  @Test(arguments: Wait.allCases)
  func itEndsThoughAllThreadsAreBlocked(_ wait: Wait) async throws {
    try await whileTwentyBlock {
      let (fired, pause) = (DispatchSemaphore(value: 0), Duration.milliseconds(50))
      let observer = OperationObserver(didFinish: { _ in fired.signal() })
      let (held, scheduler) = (HeldOperation(), SerialScheduler(name: "blocked"))
      switch wait {
      case .timeout:
        held.timeout = pause
        held.addObserver(observer)
        held.start()
      case .delay:
        let operation = DelayOperation(pause)
        operation.addObserver(observer)
        operation.start()
      case .delayedEvent: scheduler.schedule(after: pause) { fired.signal() }
      case .delayedEventOnMain: SerialScheduler.scheduleOnMain(after: pause) { fired.signal() }
      case .retry, .retryOnAnyThread:
        let retry = RetryOperation(attempts: 2, backoff: .constant(pause)) { _ -> ResultOperation<Int> in
          throw TestError("busy")
        }
        retry.addObserver(observer)
        if wait == .retry { scheduler.queue.addOperation(retry) } else { retry.start() }
      case .otherClock: ClockTimer().start(after: pause, on: ThreadClock()) { fired.signal() }
      case .suspendingClock: ClockTimer().start(after: pause, on: SuspendingClock()) { fired.signal() }
      }
      // Far longer than any of the timers takes, far shorter than twenty blocked threads take to be replaced.
      let end = fired.wait(timeout: .now() + .seconds(5))
      withExtendedLifetime((held, scheduler)) { #expect(end == .success, "\(wait)") }
    }
  }

  @Test func timersThatBlockDoNotDelayOthers() async {
    let (end, blocked) = (Gate(), Journal<Int>())
    for index in 0..<8 {
      ClockTimer().start(after: .milliseconds(1), on: ContinuousClock()) {
        blocked.write(index)
        end.pass()
      }
    }
    await blocked.reaches(8)
    let fired = Gate()
    ClockTimer().start(after: .milliseconds(1), on: ContinuousClock()) { fired.open() }
    await fired.opened()
    end.open()
  }

  @Test func noneFiresBeforeItsTimeAndAllFire() async {
    let (early, fired) = (Journal<Duration>(), Journal<Int>())
    for index in (0..<200).shuffled() {
      let (delay, start) = (Duration.microseconds(index * 500), ContinuousClock.now)
      ClockTimer().start(after: delay, on: ContinuousClock()) {
        if start.duration(to: .now) < delay { early.write(delay) }
        fired.write(index)
      }
    }
    await fired.reaches(200)
    #expect(early.entries.isEmpty && Set(fired.entries) == Set(0..<200))
  }

  @Test func anEarlierOneThatIsStartedLaterFiresFirst() async {
    let fired = Gate()
    let late = ClockTimer()
    late.start(after: .seconds(3600), on: ContinuousClock()) { Issue.record("an hour early") }
    ClockTimer().start(after: .milliseconds(1), on: ContinuousClock()) { fired.open() }
    await fired.opened()
    late.cancel()
  }

  @Test func aTimerThatIsCancelledBeforeItStarts_neverFires() {
    let timer = ClockTimer()
    timer.cancel()
    timer.start(after: .zero, on: ManualClock()) { Issue.record("it fired") }
  }

  @Test(arguments: [ContinuousClock() as any Clock<Duration>, SuspendingClock()])
  func cancellingReleasesTheClosureAtOnce(clock: any Clock<Duration>) {
    let live = LiveCount()
    let delays: [Duration] = [.seconds(3600), Duration(attoseconds: .max)]
    for delay in delays + delays {
      let timer = ClockTimer()
      timer.start(after: delay, on: clock) { [token = LiveCount.Token(live)] in _ = token }
      timer.cancel()
    }
    #expect(live.alive == 0)
  }
}

struct DeadlineQueueTests {
  @Test(arguments: SeededGenerator.seeds)
  func itGivesTheOrderOfASortedListWhateverIsRemoved(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    var queue = DeadlineQueue<Int, Int>()
    var expected: [(place: DeadlineQueue<Int, Int>.Place, element: Int)] = []
    for element in 0..<2000 {
      switch Int.random(in: 0..<(element < 1000 ? 4 : 8), using: &generator) {
      case 0...2:
        let place = queue.add(element, at: Int.random(in: 0..<50, using: &generator))
        let index = expected.firstIndex { $0.place.deadline > place.deadline } ?? expected.count
        expected.insert((place, element), at: index)
      case 3, 4:
        guard let index = expected.indices.randomElement(using: &generator) else { continue }
        let (place, element) = expected.remove(at: index)
        #expect(queue.remove(place) == element && queue.remove(place) == nil)
      default:
        let time = (expected.first?.place.deadline ?? 0) + Int.random(in: -1...1, using: &generator)
        let count = expected.firstIndex { $0.place.deadline > time } ?? expected.count
        #expect(queue.popAll(dueAt: time) == expected[..<count].map(\.element))
        expected.removeFirst(count)
      }
      #expect(queue.count == expected.count && queue.earliest == expected.first?.place.deadline)
      let heap = try #require(Mirror(reflecting: queue).descendant("heap") as? [DeadlineQueue<Int, Int>.Place])
      #expect(heap.count <= queue.count * 2 + 64)
    }
    #expect(queue.removeAll() == expected.map(\.element) && queue.earliest == nil && queue.count == 0)
  }
}
