import Operations

/// Reads the standard input, on a scheduler of its own: reading blocks, and the printer has other things to do.
final class Keyboard: Schedulable {
  let scheduler = SerialScheduler(name: "keyboard")

  /// Hands every line to the printer, up to the line “q” or the end of the input.
  func readLines(for printer: Printer) throws {
    while let line = readLine(), line != "q" {
      if printer.schedule({ printer in printer.handle(line) }) { continue }
      // So many lines wait that there is no room for more. Waiting needs none, and keeps the order: this line is
      // printed after all of those. So the input may be larger than the memory.
      try printer.wait { printer in printer.handle(line) }
    }
  }
}
