import ExampleSupport
import Operations

@main
struct EchoPrinter {
  private static let usage = """
    Usage: EchoPrinter

    Prints every line of standard input as “out LINE”. The line “q” ends the
    program, and so does the end of the input, after all earlier lines have been
    printed. The line “prefix TEXT” replaces “out” with TEXT from there on.

    Exit status: 0, 1 if a line cannot be printed, 2 if there are arguments.
    """

  static func main() async {
    await Command.run(usage: usage) { arguments in
      try arguments.end()
      let printer = Printer()
      try await Keyboard().run { keyboard in try keyboard.readLines(for: printer) }
      printer.scheduler.shutDown(.drain)
      await printer.scheduler.drained()
      return 0
    }
  }
}
