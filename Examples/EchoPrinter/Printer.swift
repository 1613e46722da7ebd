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

  /// Writes to the file handle, because `print` buffers its output and reports no errors.
  private func show(_ line: String) {
    let text = "\(options.object.prefix) \(line)\n"
    do { try FileHandle.standardOutput.write(contentsOf: Data(text.utf8)) } catch {
      Command.complain("Only \(linesPrinted) lines could be printed: \(error.localizedDescription)")
      exit(1)
    }
    linesPrinted += 1
  }
}
