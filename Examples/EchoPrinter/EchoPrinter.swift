import Foundation
import Operations

@main
struct EchoPrinter {
  private static let help = """
    Usage: EchoPrinter

    Prints every line of the standard input as “out LINE”. The line “q” ends it, and so does the end of the input, when
    everything before has been printed. The line “prefix TEXT” has TEXT printed instead of “out” from there on.

    Exit status: 1 if something could not be printed, 2 if there are arguments.
    """

  static func main() async throws {
    if let argument = CommandLine.arguments.dropFirst().first {
      if ["--help", "-h"].contains(argument) { return print(help) }
      fail("There is no argument “\(argument)”.\n\n" + help, status: 2)
    }
    let printer = Printer()
    try await Keyboard().run { keyboard in try keyboard.readLines(for: printer) }
    printer.scheduler.shutDown(.drain)
    await printer.scheduler.drained()
  }

  static func fail(_ message: String, status: Int32) -> Never {
    FileHandle.standardError.write(Data((message + "\n").utf8))
    exit(status)
  }
}
