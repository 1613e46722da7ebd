import Foundation
import Operations

/// Prints lines, on a scheduler in the background.
final class Printer: Schedulable, @unchecked Sendable {
  private static let prefixCommand = "prefix "

  /// It refuses lines when so many wait: see the keyboard.
  let scheduler = SerialScheduler(name: "printer", capacity: EventCapacity(1000, whenFull: .fail))
  /// On the same scheduler, and therefore called directly.
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

  /// Not with `print`, which keeps back what goes to a pipe, and says nothing when it cannot print.
  private func show(_ line: String) {
    let text = "\(options.object.prefix) \(line)\n"
    do { try FileHandle.standardOutput.write(contentsOf: Data(text.utf8)) } catch {
      EchoPrinter.fail("Only \(linesPrinted) lines could be printed: \(error.localizedDescription)", status: 1)
    }
    linesPrinted += 1
  }
}
