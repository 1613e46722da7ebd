@unsafe @preconcurrency import Foundation

/// A command-line program.
package enum Command {
  /// Runs a program and exits with the status that `body` returns.
  ///
  /// `--help` prints the usage. A ``UsageError`` prints its sentence and the usage on standard error, and exits with
  /// status 2. An ``InputError`` prints its sentence only, and exits with status 2. Any other error, and standard output
  /// that cannot be written, print a message and exit with status 1.
  package static func run(usage: String, _ body: (inout Arguments) async throws -> Int32) async -> Never {
    keepStandardStreamsOpen()
    var arguments = Arguments(CommandLine.arguments.dropFirst())
    var status: Int32 = 0
    do {
      if arguments.wantsHelp { print(usage) } else { status = try await body(&arguments) }
      try flush()
    } catch let error as UsageError {
      complain("\(error.localizedDescription)\n\n\(usage)")
      status = 2
    } catch {
      complain(error.localizedDescription)
      status = error is InputError ? 2 : 1
    }
    exit(status)
  }

  /// Writes the output that `print` has buffered, and throws if any output could not be written.
  package static func flush() throws {
    // `fflush(nil)` would also wait for a thread that reads standard input.
    if unsafe fflush(stdout) != 0 { throw OutputError(reason: unsafe ": " + String(cString: strerror(errno))) }
    if unsafe ferror(stdout) != 0 { throw OutputError(reason: "") }
  }

  /// Prints a message on standard error, if standard error can be written.
  package static func complain(_ message: String) { write(message + "\n") }

  /// Writes text to standard error, if standard error can be written.
  package static func write(_ text: String) {
    // Unlike `write(_:)`, which traps, this method throws.
    try? FileHandle.standardError.write(contentsOf: Data(text.utf8))
  }

  /// Returns the text, escaped if it contains control characters, such as line breaks and commands to the terminal.
  package static func printable(_ text: String) -> String {
    text.unicodeScalars.contains { $0.properties.generalCategory == .control } ? text.debugDescription : text
  }

  /// The number of columns of the terminal, or 80 if standard output is not a terminal.
  package static var width: Int {
    var size = winsize()
    guard unsafe ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 80 }
    return Int(size.ws_col)
  }

  /// Opens the closed ones among the standard streams, so that no other file takes their place. They still cannot be
  /// written.
  private static func keepStandardStreamsOpen() {
    var descriptor: Int32
    repeat { descriptor = unsafe open("/dev/null", O_RDONLY) } while (0...STDERR_FILENO).contains(descriptor)
    close(descriptor)
  }
}

private struct OutputError: LocalizedError {
  let reason: String

  var errorDescription: String? { "Standard output could not be written\(reason)." }
}
