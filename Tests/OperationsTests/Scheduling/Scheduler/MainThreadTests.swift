import Foundation
import Operations
import OperationsTestSupport
import Soak
import Testing

/// The order in which closures arrive on the main thread, and where they are released.
@Suite(.timeLimit(.minutes(5)))
struct MainThreadTests {
  private let arrivals = Journal<Int>()
  private let releases = Journal<Bool>()

  /// Writes its number when it arrives, and whether it is released on the main thread.
  final class Parcel: Sendable {
    private let (number, suite): (Int, MainThreadTests)

    init(_ suite: MainThreadTests, _ number: Int = 0) { (self.number, self.suite) = (number, suite) }

    func arrive() { suite.arrivals.write(number) }

    deinit { suite.releases.write(SerialScheduler.main.isCurrent) }
  }

  @Test(arguments: [true, false]) func whatOneThreadSends_arrivesInOrder(isHeld: Bool) async throws {
    let ways: [@Sendable (@escaping @Sendable () -> Void) -> Void] =
      MainWay.allCases.map { way in { body in way.send { body } } } + [
        { body in immediately { try await SerialScheduler.main.run(body) } },
        { body in immediately { await Notes(on: .main).perform(body) } },
        { body in immediately { await MainActor.run(body: body) } },
      ]
    let sent = (0..<20).flatMap { _ in ways.shuffled() }
    let end = isHeld ? await SerialScheduler.main.held() : Gate()
    try await onThread {
      for (index, send) in sent.enumerated() { send { arrivals.write(index) } }
    }
    .get()
    end.open()
    #expect(await arrivals.all(sent.count) == Array(sent.indices))
  }

  /// Foundation passes an operation to the main queue when the one before has finished.
  @Test func operationAddedToTheMainQueue_comesAfterWhatWasSentBefore() async throws {
    let end = await SerialScheduler.main.held()
    for index in 0..<10 {
      SerialScheduler.scheduleOnMain { arrivals.write(index * 2) }
      OperationQueue.main.addOperation { arrivals.write(index * 2 + 1) }
    }
    end.open()
    let entries = await arrivals.all(20)
    #expect(entries.filter { $0 % 2 == 0 } == (0..<10).map { $0 * 2 })
    #expect(entries.filter { $0 % 2 == 1 } == (0..<10).map { $0 * 2 + 1 })
    for index in 0..<10 {
      #expect(entries.firstIndex(of: index * 2)! < entries.firstIndex(of: index * 2 + 1)!)
    }
  }

  @Test func theEndOfAnOperationArrivesAfterItsProgress() async {
    let (worker, queue) = (SerialScheduler(name: "worker"), OperationQueue())
    for round in 0..<200 {
      let report: @Sendable () -> Void = {
        for step in 0..<3 { SerialScheduler.scheduleOnMain { arrivals.write(round * 4 + step) } }
      }
      let end: @MainActor @Sendable () -> Void = { arrivals.write(round * 4 + 3) }
      let operation = ResultOperation(report)
      switch round % 4 {
      case 0: operation.onFinishOnMain { _ in end() }
      case 1:
        let dialog = MainOperation { operation in
          end()
          operation.finish()
        }
        operation ==> dialog
        queue.addOperation(dialog)
      case 2:
        immediately { @MainActor in
          await operation.finished()
          end()
        }
      default: worker.schedule(report, deliverOn: .main, { _ in end() })
      }
      if round % 4 < 3 { queue.addOperation(operation) }
      #expect(await arrivals.all(round * 4 + 4).suffix(4) == [0, 1, 2, 3].map { round * 4 + $0 })
    }
  }

  // MARK: Releasing

  @Test(arguments: [MainWay.scheduled, .coalesced, .afterNothing, .event, .finished, .observed, .operation])
  func closureIsReleasedOnMain(way: MainWay) async throws {
    try await onThread {
      for round in 0..<300 {
        way.send { { [parcel = Parcel(self)] in parcel.arrive() } }
        // The main thread runs each closure while `send` returns.
        while arrivals.count <= round {}
      }
    }
    .get()
    #expect(await releases.all(300).filter { !$0 }.count == 0)
  }

  @Test func closuresOfAnOperationThatIsStillNotifyingObservers_areReleasedOnMain() async {
    let (operation, called) = (ResultOperation {}, Gate())
    operation.onFinishOnMain { [parcel = Parcel(self)] _ in parcel.arrive() }
    operation.addObserver(.onMain(didFinish: { [parcel = Parcel(self)] _ in parcel.arrive() }))
    operation.onFinish { _ in
      Task {
        await arrivals.reaches(2)
        called.open()
      }
      // This thread releases the observers after the main thread has called them.
      called.pass()
    }
    OperationQueue().addOperation(operation)
    #expect(await releases.all(2) == [true, true])
  }

  @Test func closureThatReceivesAResult_isReleasedOnMain() async {
    let worker = SerialScheduler(name: "worker")
    func receiver() -> @MainActor @Sendable (Result<Void, any Error>) -> Void {
      { [parcel = Parcel(self)] _ in parcel.arrive() }
    }
    for _ in 0..<300 { worker.schedule({}, deliverOn: .main, receiver()) }
    #expect(await releases.all(300).filter { !$0 }.count == 0)
  }

  @Test func eventThatDoesNotRun_isReleasedOnMain() async {
    let end = await SerialScheduler.main.held()
    SerialScheduler.scheduleOnMain(after: .seconds(3600)) { [parcel = Parcel(self)] in parcel.arrive() }.cancel()
    SerialScheduler.scheduleOnMain(after: .zero) { [parcel = Parcel(self)] in parcel.arrive() }.cancel()
    let key = UUID().uuidString
    for number in 0..<3 {
      SerialScheduler.scheduleOnMain(coalescing: key) { [parcel = Parcel(self, number)] in parcel.arrive() }
    }
    end.open()
    #expect(await releases.all(5) == Array(repeating: true, count: 5))
    #expect(arrivals.entries == [2])
  }

  @Test(arguments: [nil, .drain, .discard] as [SerialScheduler.ShutdownMode?])
  func schedulableObject_isReleasedOnItsScheduler(mode: SerialScheduler.ShutdownMode?) async {
    final class Content {
      private let (scheduler, releases): (SerialScheduler, Journal<Bool>)
      init(_ scheduler: SerialScheduler, _ releases: Journal<Bool>) {
        (self.scheduler, self.releases) = (scheduler, releases)
      }
      deinit { releases.write(scheduler.isCurrent) }
    }
    let schedulers = [SerialScheduler(name: "home")] + (mode == nil ? [.main] : [])
    for scheduler in schedulers {
      let object = SchedulableObject(Content(scheduler, releases), on: scheduler)
      withExtendedLifetime(object) {}
      if let mode { scheduler.shutDown(mode) }
    }
    #expect(await releases.all(schedulers.count) == schedulers.map { _ in true })
  }
}
