import Foundation
import Operations
import OperationsTestSupport
import Testing

private let printed = Journal<String>()

private func print(_ item: Any) { printed.write("\(item)") }

/// The page SchedulableObjects, and the comments in Sources/Operations/Scheduling.
@Suite(.timeLimit(.minutes(5)))
struct SchedulableObjectsSnippets {
  struct Photo { let name: String }
  struct Post: Sendable {}

  actor Index: ScheduledActor {
    nonisolated let scheduler: SerialScheduler
    static let names = Journal<String>()

    init(on scheduler: SerialScheduler) { self.scheduler = scheduler }

    func insert(_ name: String) { Self.names.write(name) }
  }

  actor Library: ScheduledActor {
    nonisolated let scheduler: SerialScheduler
    private let index: Index  // another actor, on this scheduler

    init(on scheduler: SerialScheduler) {
      self.scheduler = scheduler
      index = Index(on: scheduler)
    }

    nonisolated func cameraDidTake(_ photo: Photo) {
      schedule { library in library.add(photo) }
    }

    func add(_ photo: Photo) {
      // A direct call: neither a suspension nor another thread.
      index.assumeIsolated { $0.insert(photo.name) }
    }
  }

  final class Printer: Schedulable, @unchecked Sendable {
    let scheduler = SerialScheduler(name: "printer")
    @Confined private var lines = 0

    func show(_ line: String) {  // call it on the scheduler
      lines += 1
      print(line)
    }
  }

  enum Actors {
    actor Printer: ScheduledActor {
      nonisolated let scheduler: SerialScheduler
      init(on scheduler: SerialScheduler) { self.scheduler = scheduler }
      func show(_ line: String) { print(line) }
    }
  }

  func schedule(on printer: Actors.Printer) {
    printer.schedule { $0.show("Hello") }
  }

  final class Feed: Schedulable, @unchecked Sendable {
    let scheduler = SerialScheduler(name: "feed")
    @Confined private var posts: [Post] = []
  }

  final class Options { var isVerbose = false }

  /// An object on the main scheduler.
  final class SnapshotView: Schedulable, @unchecked Sendable {
    let scheduler = SerialScheduler.main
    let shown = Journal<Int>()

    func show(_ snapshot: Int) { shown.write(snapshot) }
  }

  @Test @MainActor func events() async throws {
    let (file, viewModel) = ("file", Screen())
    @Sendable func measure(_ file: String) throws -> Int { file.count }
    @Sendable func load(_ file: String) throws -> String { "content of \(file)" }

    // Events run later, in order. `run` returns the answer of one.
    let disk = SerialScheduler(name: "disk")
    disk.schedule { print("on the scheduler") }
    let size = try await disk.run { try measure(file) }

    // The answer as an event.
    disk.schedule({ try load(file) }, deliverOn: .main, { result in viewModel.show(result) })
    // May use main-actor state.
    SerialScheduler.scheduleOnMain { viewModel.refresh() }

    await viewModel.shown.reaches(2)
    #expect(size == 4 && printed.entries.contains("on the scheduler"))
    #expect(Set(viewModel.shown.entries) == ["content of file", "refreshed"])
  }

  @Test func objects() async {
    let (disk, printer) = (SerialScheduler(name: "disk"), Printer())
    await Actors.Printer(on: disk).show("from an actor")
    printer.schedule { printer in printer.show("Hello") }

    let options = SchedulableObject(Options(), on: disk)
    options.schedule { options in options.isVerbose = true }  // from anywhere
    disk.schedule { print(options.object.isVerbose) }  // on the scheduler; elsewhere it traps
    await printer.scheduler.drained()
    await disk.drained()
    #expect(Set(printed.entries).isSuperset(of: ["from an actor", "Hello", "true"]))
  }

  @Test func aWatchdog() {
    @Sendable func log(_ report: SchedulerWatchdog.Report) {}
    SerialScheduler.main.watchdog = SchedulerWatchdog(limit: .milliseconds(100)) { report in log(report) }
    #expect(SerialScheduler.main.watchdog?.limit == .milliseconds(100))
    SerialScheduler.main.watchdog = nil
  }

  @Test func actors() async {
    let library = Library(on: SerialScheduler(name: "library"))
    await library.add(Photo(name: "a"))
    for number in 1...1_000 { library.cameraDidTake(Photo(name: "\(number)")) }
    await library.scheduler.drained()
    #expect(Index.names.entries == ["a"] + (1...1_000).map(String.init))
  }

  @Test func anObjectOfAnothersMaking() async throws {
    let (disk, date) = (SerialScheduler(name: "disk"), Date(timeIntervalSince1970: 0))
    let formatter = SchedulableObject(DateFormatter(), on: disk)
    let text = try await formatter.run { formatter in formatter.string(from: date) }
    #expect(text.isEmpty)
  }

  @Test func capacity() async throws {
    let (log, lines) = (Journal<String>(), (0..<5_000).map(String.init))
    let disk = SerialScheduler(name: "disk", capacity: EventCapacity(1_000, whenFull: .suspend))
    // Suspends while 1,000 events wait.
    for line in lines { try await disk.send { log.write(line) } }
    await disk.drained()
    #expect(log.entries == lines)
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

  #if !os(iOS) && !os(tvOS) && !os(watchOS) && !os(visionOS)
  @Test func elsewhereItTraps() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let printer = Printer()
      printer.schedule { printer in printer.show("Hello") }
      // Elsewhere: a trap that names lines, “printer” and where this is.
      printer.show("Hello")
    }
    let printed = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
    #expect(printed.contains("“lines” of “Printer” (") && printed.contains("belongs to the scheduler “printer”"))
  }
  #endif
}
