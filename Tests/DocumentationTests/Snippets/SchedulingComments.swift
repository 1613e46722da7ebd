import Foundation
import Operations
import OperationsTestSupport
import Testing

private let printed = Journal<String>()

private func print(_ item: Any) { printed.write("\(item)") }

/// The code in the comments of Sources/Operations/Scheduling.
@Suite(.timeLimit(.minutes(5)))
struct SchedulingComments {
  enum Actors {
    actor Printer: ScheduledActor {
      nonisolated let scheduler: SerialScheduler
      init(on scheduler: SerialScheduler) { self.scheduler = scheduler }
      func show(_ line: String) { print(line) }
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

  struct Post: Sendable {}

  final class Feed: Schedulable, @unchecked Sendable {
    let scheduler = SerialScheduler(name: "feed")
    @Confined private var posts: [Post] = []
  }

  final class Options {
    var isVerbose = false
  }

  @MainActor
  final class ViewModel {
    let shown = Journal<String>()

    func show(_ result: Result<String, any Error>) { shown.write((try? result.get()) ?? "an error") }
  }

  private let disk = SerialScheduler(name: "disk")

  @Test func printers() async {
    await Actors.Printer(on: disk).show("from an actor")
    #expect(printed.entries.contains("from an actor"))
    let printer = Printer()

    printer.schedule { printer in printer.show("Hello") }

    await printer.scheduler.drained()
    #expect(printed.entries.contains("Hello"))
  }

  @Test func anObjectOfAnotherMaking() async {
    let disk = disk

    let options = SchedulableObject(Options(), on: disk)
    options.schedule { options in options.isVerbose = true }  // from anywhere
    disk.schedule { print(options.object.isVerbose) }  // on the scheduler; elsewhere it traps

    await disk.drained()
    #expect(printed.entries.contains("true"))
  }

  @Test func aScheduler() async throws {
    let file = "file"
    @Sendable func measure(_ file: String) throws -> Int { file.count }

    let disk = SerialScheduler(name: "disk")
    disk.schedule { print("on the scheduler") }
    let size = try await disk.run { try measure(file) }

    #expect(size == 4 && printed.entries.contains("on the scheduler"))
  }

  @Test @MainActor func delivery() async {
    let (file, viewModel) = ("file", ViewModel())
    @Sendable func load(_ file: String) throws -> String { "content of \(file)" }

    disk.schedule({ try load(file) }, deliverOn: .main, { result in viewModel.show(result) })

    await viewModel.shown.reaches(1)
    #expect(viewModel.shown.entries == ["content of file"])
  }

  @Test func aWatchdog() {
    @Sendable func log(_ report: SchedulerWatchdog.Report) { print(report) }

    SerialScheduler.main.watchdog = SchedulerWatchdog(limit: .milliseconds(100)) { report in log(report) }

    #expect(SerialScheduler.main.watchdog?.limit == .milliseconds(100))
    SerialScheduler.main.watchdog = nil
  }
}
