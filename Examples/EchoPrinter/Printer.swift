import ExampleSupport
import Foundation
import Operations

/// How lines are printed. A `SchedulableObject` confines it to a scheduler, so the class itself needs none.
final class Options {
  var prefix = "out"
}

/// Prints lines, on its own scheduler.
final class Printer: Schedulable, @unchecked Sendable {
  private static let prefixCommand = "prefix "

  /// Refuses lines while 1,000 wait. `Keyboard` waits in this case.
  let scheduler = SerialScheduler(name: "printer", capacity: EventCapacity(1000, whenFull: .fail))
  /// Shares the printer's scheduler, so the printer calls it directly.
  private let options: SchedulableObject<Options>
  @Confined private var linesPrinted = 0

  init() { options = SchedulableObject(Options(), on: scheduler) }

  func handle(_ line: String) {
    if line.hasPrefix(Printer.prefixCommand) {
      options.object.prefix = String(line.dropFirst(Printer.prefixCommand.count))
    } else {
      show(line)
    }
  }

  private func show(_ line: String) {
    print(options.object.prefix, line)
    do { try Command.flush() } catch {
      Command.complain("\(error.localizedDescription) \(linesPrinted) lines were printed.")
      exit(1)
    }
    linesPrinted += 1
  }
}
