import Foundation
import Operations
import OperationsTestSupport
import Soak
import Testing

@MainActor
private final class ViewModel {
  var lines: [String] = []
  let shown = Journal<[String]>()

  func show(_ line: String) {
    lines.append(line)
    shown.write(lines)
  }
}

/// Results that come back, weak events, and events on main.
@Suite(.timeLimit(.minutes(5)))
struct DeliveryTests {
  private let worker = SerialScheduler(name: "worker")
  private let home = SerialScheduler(name: "home")
  private let journal = Journal<String>()

  @Test func aResultComesBackOnTheOtherScheduler() async {
    let (worker, home, journal) = (worker, home, journal)
    let isAccepted = worker.schedule(
      { worker.isCurrent ? 42 : 0 },
      deliverOn: home,
      { result in
        journal.write("\((try? result.get()) ?? -1) \(home.isCurrent) \(worker.isCurrent)")
      }
    )
    await journal.reaches(1)
    #expect(isAccepted && journal.entries == ["42 true false"])
  }

  @Test func anErrorComesBackToo() async {
    let journal = journal
    worker.schedule(
      { throw TestError("broken") },
      deliverOn: home,
      { (result: Result<Int, any Error>) in
        if case .failure(let error) = result { journal.write("\(error)") }
      }
    )
    await journal.reaches(1)
    #expect(journal.entries == ["broken"])
  }

  @Test func resultsComeBackInOrder() async {
    let journal = journal
    for index in 0..<500 {
      worker.schedule({ index }, deliverOn: home, { journal.write("\((try? $0.get()) ?? -1)") })
    }
    await journal.reaches(500)
    #expect(journal.entries == (0..<500).map(String.init))
  }

  @Test func onTheSameSchedulerTheResultComesInAnEventOfItsOwn() async {
    let (worker, journal) = (worker, journal)
    let end = await worker.held()
    worker.schedule({ journal.write("work") }, deliverOn: worker, { _ in journal.write("delivery") })
    worker.schedule { journal.write("event") }
    end.open()
    await journal.reaches(3)
    #expect(journal.entries == ["work", "event", "delivery"])
  }

  @Test func whatIsDiscardedDeliversThat() async {
    let journal = journal
    let end = await worker.held()
    worker.schedule({ journal.write("work") }, deliverOn: home, { journal.write("\($0.code == .shutDown)") })
    worker.shutDown(.discard)
    // While the worker is still held.
    await journal.reaches(1)
    #expect(journal.entries == ["true"] && !end.isOpen)
    end.open()
    await worker.drained()
    await home.drained()
    #expect(journal.entries == ["true"])
  }

  @Test func whatIsDrainedDeliversItsResult() async {
    let journal = journal
    let end = await worker.held()
    worker.schedule({ 1 }, deliverOn: home, { journal.write("\((try? $0.get()) ?? -1)") })
    worker.shutDown(.drain)
    end.open()
    await journal.reaches(1)
    #expect(journal.entries == ["1"])
  }

  @Test func whoIsShutDownGetsNothingDelivered() async {
    let live = LiveCount()
    let journal = journal
    let end = await worker.held()
    worker.schedule(
      { journal.write("work") },
      deliverOn: home,
      { [token = LiveCount.Token(live)] _ in
        withExtendedLifetime(token) { journal.write("delivery") }
      }
    )
    home.shutDown(.drain)
    end.open()
    await worker.drained()
    await home.drained()
    #expect(journal.entries == ["work"])
    #expect(home.statistics.eventsDropped == 1)
    await live.none()
  }

  @Test @MainActor func onMainTheResultMayTouchTheMainActorsState() async {
    let model = ViewModel()
    worker.schedule({ "loaded" }, deliverOn: .main, { result in model.show((try? result.get()) ?? "") })
    worker.schedule(
      { throw TestError("broken") },
      deliverOn: .main,
      { (result: Result<Int, any Error>) in
        if case .failure(let error) = result { model.show("\(error)") }
      }
    )
    await model.shown.reaches(2)
    #expect(model.lines == ["loaded", "broken"])
  }

  @Test @MainActor func anObjectsResultComesBack() async {
    let model = ViewModel()
    let journal = journal
    let shelf = Shelf(on: worker)
    let object = SchedulableObject([7], on: worker)
    shelf.schedule { shelf in shelf.items = [1, 2] }
    shelf.schedule({ "\($0.items)" }, deliverOn: .main, { model.show((try? $0.get()) ?? "") })
    object.schedule({ "\($0)" }, deliverOn: .main, { model.show((try? $0.get()) ?? "") })
    await model.shown.reaches(2)
    #expect(model.lines == ["[1, 2]", "[7]"])
    shelf.schedule({ $0.items.count }, deliverOn: home, { journal.write("\((try? $0.get()) ?? -1)") })
    object.schedule({ $0.count }, deliverOn: home, { journal.write("\((try? $0.get()) ?? -1)") })
    await journal.reaches(2)
    #expect(journal.entries == ["2", "1"])
  }

  @Test @MainActor func whatIsScheduledOnMainForLaterMayTouchTheMainActorsState() async {
    let (shown, never) = (Gate(), Gate())
    var count = 0
    SerialScheduler.scheduleOnMain(after: .milliseconds(1)) {
      count += 1
      shown.open()
    }
    SerialScheduler.scheduleOnMain(after: .seconds(1000)) { never.open() }.cancel()
    await shown.opened()
    #expect(count == 1 && !never.isOpen)
  }

  @Test @MainActor func scheduleOnMainMayTouchTheMainActorsState() async {
    let model = ViewModel()
    #expect(SerialScheduler.scheduleOnMain { model.show("first") })
    _ = await Task.detached { SerialScheduler.scheduleOnMain { model.show("second") } }.value
    #expect(model.lines.first != "second")
    await model.shown.reaches(2)
    #expect(model.lines == ["first", "second"])
  }

  @Test @MainActor func eventsOfTheMainSchedulerKeepTheirOrder() async {
    let model = ViewModel()
    for index in 0..<200 {
      if index.isMultiple(of: 2) {
        SerialScheduler.main.schedule { MainActor.assumeIsolated { model.show("\(index)") } }
      } else {
        SerialScheduler.scheduleOnMain { model.show("\(index)") }
      }
    }
    await model.shown.reaches(200)
    #expect(model.lines == (0..<200).map(String.init))
  }

  @Test func aWeakEventDoesNotKeepTheObjectAlive() async {
    let (worker, journal) = (worker, journal)
    let end = await worker.held()
    var shelf: Shelf? = Shelf(on: worker)
    let reference = WeakReference(shelf!)
    let isAccepted = shelf?.scheduleWeakly { _ in journal.write("ran") }
    shelf = nil
    #expect(isAccepted == true && reference.object == nil)
    end.open()
    await worker.drained()
    #expect(journal.entries.isEmpty)
  }

  @Test func aWeakEventRunsIfTheObjectIsThere() async throws {
    let shelf = Shelf(on: worker)
    shelf.scheduleWeakly { shelf in shelf.items.append(1) }
    #expect(try await shelf.run { $0.items } == [1])
    worker.shutDown()
    let isAccepted = shelf.scheduleWeakly { _ in }
    #expect(!isAccepted)
  }

  @Test func anOrdinaryEventKeepsTheObjectUntilItHasRun() async {
    let (worker, journal) = (worker, journal)
    let end = await worker.held()
    var shelf: Shelf? = Shelf(on: worker)
    let reference = WeakReference(shelf!)
    shelf?.schedule { shelf in
      shelf.items.append(1)
      journal.write("\(shelf.items)")
    }
    shelf = nil
    #expect(reference.object != nil)
    end.open()
    await worker.drained()
    #expect(journal.entries == ["[1]"] && reference.object == nil)
  }
}
