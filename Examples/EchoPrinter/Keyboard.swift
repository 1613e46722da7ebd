import Operations

/// Reads standard input, on its own scheduler because reading blocks a thread.
final class Keyboard: Schedulable {
  let scheduler = SerialScheduler(name: "keyboard")

  /// Sends every line to the printer, up to the line “q” or the end of the input.
  func readLines(for printer: Printer) throws {
    while let line = readLine(), line != "q" {
      if printer.schedule({ printer in printer.handle(line) }) { continue }
      // The printer's scheduler is full. `wait` needs no room in it and runs after all scheduled lines, so the order
      // holds and the input may be larger than memory.
      try printer.wait { printer in printer.handle(line) }
    }
  }
}
