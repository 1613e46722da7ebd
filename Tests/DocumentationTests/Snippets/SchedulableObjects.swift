import Foundation
import Operations
import OperationsTestSupport
import Testing

@globalActor
actor DiskActor: ScheduledActor {
  static let shared = DiskActor()
  nonisolated let scheduler = SerialScheduler(name: "disk")
}

extension SchedulableObjectsSnippets.Library {
  fileprivate var names: [String] { index.assumeIsolated { $0.names } }
}

@Suite(.timeLimit(.minutes(5)))
struct SchedulableObjectsSnippets {
  struct Photo { let name: String }
  struct Job: Sendable {}

  actor Index: ScheduledActor {
    nonisolated let scheduler: SerialScheduler
    private(set) var names: [String] = []

    init(on scheduler: SerialScheduler) { self.scheduler = scheduler }

    func insert(_ name: String) { names.append(name) }
  }

  actor Library: ScheduledActor {
    nonisolated let scheduler: SerialScheduler
    private let index: Index  // another actor, on the same scheduler

    init(on scheduler: SerialScheduler) {
      self.scheduler = scheduler
      index = Index(on: scheduler)
    }

    func add(_ photo: Photo) {
      index.assumeIsolated { $0.insert(photo.name) }  // a direct call: neither a suspension nor another thread
    }
  }

  final class Printer: Schedulable, @unchecked Sendable {
    let scheduler = SerialScheduler(name: "printer")
    @Confined private var jobs: [Job] = []

    var count: Int { jobs.count }

    func add(_ job: Job) { jobs.append(job) }  // in place, without a copy
  }

  @MainActor
  final class View {
    let shown = Journal<String>()

    func show(_ result: Result<String, any Error>) { shown.write((try? result.get()) ?? "an error") }
    func show(_ errors: [any Error]) { shown.write("\(errors.count) errors") }
    func refresh() { shown.write("refreshed") }
  }

  /// An object on the main scheduler.
  final class SnapshotView: Schedulable, @unchecked Sendable {
    let scheduler = SerialScheduler.main
    let shown = Journal<Int>()

    func show(_ snapshot: Int) { shown.write(snapshot) }
  }

  final class Poller: Schedulable, @unchecked Sendable {
    let scheduler: SerialScheduler
    @Confined private(set) var count = 0

    init(on scheduler: SerialScheduler) {
      self.scheduler = scheduler
      scheduleNext()
    }

    private func scheduleNext() {
      schedule(after: .seconds(60)) { poller in
        poller.count += 1
        poller.scheduleNext()
      }
    }
  }

  final class Log: Sendable {
    let lines = Journal<String>()

    func append(_ line: String) { lines.write(line) }
  }

  @Test @MainActor func events() async throws {
    let (log, line, file, view) = (Log(), "line", "file", View())
    @Sendable func measure(_ file: String) throws -> Int { file.count }
    @Sendable func load(_ file: String) throws -> String { "content of \(file)" }

    let disk = SerialScheduler(name: "disk")

    disk.schedule { log.append(line) }  // an event: later, in order, on “disk”
    let size = try await disk.run { try measure(file) }  // with an answer, for asynchronous code
    disk.schedule({ try load(file) }, deliverOn: .main, { result in view.show(result) })  // the answer as an event
    SerialScheduler.scheduleOnMain { view.refresh() }  // may touch what is the main actor's

    await view.shown.reaches(2)
    #expect(size == 4 && log.lines.entries == ["line"])
    #expect(Set(view.shown.entries) == ["content of file", "refreshed"])
  }

  /// The page Effects.
  @Test @MainActor func theEndOfAnOperation() async throws {
    let (upload, view) = (AsyncOperation(), View())
    upload.addObserver(
      OperationObserver(didFinish: { operation in
        let errors = operation.errors
        SerialScheduler.scheduleOnMain { view.show(errors) }
      })
    )
    try await OperationQueue().run(upload)
    await view.shown.reaches(1)
    #expect(view.shown.entries == ["0 errors"])
  }

  @Test func actors() async {
    let library = Library(on: SerialScheduler(name: "library"))
    await library.add(Photo(name: "a"))
    #expect(await library.names == ["a"])
    #expect(await Self.nameOfCurrent() == "disk")
  }

  @DiskActor
  private static func nameOfCurrent() -> String? { SerialScheduler.current?.name }

  @Test func anObjectOfAnothersMaking() async throws {
    let (disk, date) = (SerialScheduler(name: "disk"), Date(timeIntervalSince1970: 0))

    let formatter = SchedulableObject(DateFormatter(), on: disk)
    let text = try await formatter.run { formatter in formatter.string(from: date) }

    #expect(text.isEmpty)
  }

  @Test func waiting() async throws {
    let printer = Printer()
    func countOfJobs() throws -> Int { try printer.wait { printer in printer.count } }

    printer.schedule { printer in printer.add(Job()) }
    let count = try { try countOfJobs() }()
    #expect(count == 1)
  }

  @Test func capacity() async throws {
    let (log, lines) = (Log(), (0..<5_000).map(String.init))

    let disk = SerialScheduler(name: "disk", capacity: EventCapacity(1_000, whenFull: .suspend))
    for line in lines { try await disk.send { log.append(line) } }  // suspends while 1,000 events wait

    await disk.drained()
    #expect(log.lines.entries == lines)
  }

  @Test func coalescing() async {
    let view = SnapshotView()
    await MainActor.run {
      for snapshot in 1...3 {
        view.schedule(coalescing: "snapshot") { view in view.show(snapshot) }
      }
    }
    await view.scheduler.drained()
    #expect(view.shown.entries == [3])
  }

  @Test func virtualTime() async throws {
    let clock = ManualClock()
    let scheduler = SerialScheduler(name: "under test", clock: clock)
    let poller = Poller(on: scheduler)  // schedules itself every minute
    await clock.advance(by: .seconds(600), draining: scheduler)

    #expect(try await poller.run { $0.count } == 10)
    scheduler.shutDown()
  }

  #if !os(iOS) && !os(tvOS) && !os(watchOS) && !os(visionOS)
  @Test func elsewhereItTraps() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let (printer, job) = (Printer(), Job())

      printer.schedule { printer in printer.add(job) }
      printer.add(job)  // elsewhere: a trap that names jobs, “printer” and where this is
    }
    let printed = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
    #expect(printed.contains("“jobs” of “Printer” (") && printed.contains("belongs to the scheduler “printer”"))
  }
  #endif
}
