import Foundation
import Operations
import OperationsTestSupport
import Soak
import Testing

/// Results that come back, by delivery or by `run`, weak events, and events on main.
@Suite(.timeLimit(.minutes(5)))
struct DeliveryTests {
  private let worker = SerialScheduler(name: "worker")
  private let home = SerialScheduler(name: "home")
  private let journal = Journal<String>()

  @MainActor private func show(_ line: String) { journal.write(line) }

  @Test func onTheSameSchedulerTheResultComesInAnEventOfItsOwn() async {
    let end = await worker.held()
    worker.schedule({ journal.write("work") }, deliverOn: worker, { _ in journal.write("delivery") })
    worker.schedule { journal.write("event") }
    end.open()
    #expect(await journal.all(3) == ["work", "event", "delivery"])
  }

  @Test func whatIsDiscardedDeliversThat() async {
    let end = await worker.held()
    worker.schedule({ journal.write("work") }, deliverOn: home, { journal.write("\($0.code == .shutDown)") })
    worker.shutDown(.discard)
    // The error arrives although the scheduler is held.
    await journal.reaches(1)
    await worker.drained(afterOpening: end)
    await home.drained()
    #expect(journal.entries == ["true"])
  }

  @Test func deliveryToASchedulerThatIsShutDown_isDropped() async {
    let live = LiveCount()
    let end = await worker.held()
    let work: @Sendable () -> Void = { journal.write("work") }
    worker.schedule(work, deliverOn: home, { [body = live.counted { journal.write("delivery") }] _ in body() })
    home.shutDown(.drain)
    await worker.drained(afterOpening: end)
    await home.drained()
    #expect(journal.entries == ["work"])
    #expect(home.statistics.eventsDropped == 1)
    await live.none()
  }

  @Test(arguments: [(true, true), (true, false), (false, false)])
  func onlyAWeakEventEndsWithItsObject(isWeak: Bool, isHeld: Bool) async {
    let end = await worker.held()
    var shelf: Shelf? = Shelf(on: worker)
    let reference = WeakReference(shelf!)
    let event: @Sendable (Shelf) -> Void = { _ in journal.write("ran") }
    let isAccepted = isWeak ? shelf?.scheduleWeakly(event) : shelf?.schedule(event)
    let holder = isHeld ? shelf : nil
    shelf = nil
    let isGone = isWeak && !isHeld
    #expect(isAccepted == true && (reference.object == nil) == isGone)
    await worker.drained(afterOpening: end)
    withExtendedLifetime(holder) { #expect(journal.entries == (isGone ? [] : ["ran"])) }
  }

  // MARK: Main

  @Test @MainActor func onMainTheResultMayTouchTheMainActorsState() async {
    worker.schedule({ () throws -> Int in throw TestError("broken") }, deliverOn: .main, { show("\($0)") })
    let shelf = Shelf(on: worker)
    shelf.schedule { shelf in shelf.items = [1, 2] }
    shelf.schedule({ $0.items }, deliverOn: .main, { show("\($0)") })
    await journal.reaches(2)
    shelf.schedule({ $0.items.count }, deliverOn: home, { journal.write("\($0)") })
    #expect(await journal.all(3) == ["failure(broken)", "success([1, 2])", "success(2)"])
  }

  @Test @MainActor func whatIsScheduledOnMainForLaterMayTouchTheMainActorsState() async {
    let (shown, never) = (Gate(), Gate())
    var count = 0
    // The second replaces the first.
    for number in [1, 2] { SerialScheduler.scheduleOnMain(coalescing: "count") { count += number } }
    SerialScheduler.scheduleOnMain(after: .milliseconds(1)) {
      count += 1
      shown.open()
    }
    SerialScheduler.scheduleOnMain(after: .seconds(1000)) { never.open() }.cancel()
    await shown.opened()
    #expect(count == 3 && !never.isOpen)
  }

  // MARK: Cancelling run

  @Test func cancelledBeforeItBeginsItNeverRuns() async throws {
    let live = LiveCount()
    let end = await worker.held()
    let task = immediately { [body = live.counted { journal.write("ran") }] in try await worker.run(body) }
    task.cancel()
    let late = cancelledTask { try await worker.run { journal.write("ran") } }
    // The tasks end although the scheduler is held.
    for cancelled in [task, late] { await #expect(throws: CancellationError.self) { try await cancelled.value } }
    await worker.drained(afterOpening: end)
    #expect(journal.entries.isEmpty)
    await live.none()
  }
}
