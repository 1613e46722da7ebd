import ExampleSupport
import Foundation
import Operations

@main
struct WordCount {
  private static let usage = """
    Usage: WordCount [--limit N] [--timeout SECONDS] [--trace FILE] [--] PATH

    Counts the words of all files at or below PATH. The files must be UTF-8. A
    word is a run of characters that are not Unicode white space. Symbolic links
    below PATH are not followed.

      --limit N          the number of files to read at once; by default the
                         number of processors, and at least 2
      --timeout SECONDS  when to give up
      --trace FILE       writes what ran when into FILE, for ui.perfetto.dev, and
                         prints a summary on standard error
      --help             prints this text
      --                 the next argument is PATH, even if it starts with a dash

    Exit status: 0 if everything was counted, 1 if something could not be read
    or written, 2 if the arguments are wrong, 124 after the timeout, 130 after
    Ctrl-C.
    """

  private enum ExitStatus {
    static let success: Int32 = 0
    static let incomplete: Int32 = 1
    static let timedOut: Int32 = 124
  }

  static func main() async {
    await Command.run(usage: usage) { arguments in try await count(with: try Options(&arguments)) }
  }

  private static func count(with options: Options) async throws -> Int32 {
    let trace = options.trace.map { TraceFile($0) }
    let tracer = trace.map { _ in OperationTracer() }
    let counting: CountOperation
    do {
      counting = try CountOperation(path: options.path, limit: options.limit, tracer: tracer)
    } catch { throw InputError("The path “\(options.path)” cannot be counted: \(error.localizedDescription).") }
    counting.timeout = options.timeout
    // Detects a path that cannot be written before the count.
    try trace?.create()
    let interrupts = Interrupts { counting.cancel(with: Interruption()) }
    defer { interrupts.stop() }
    let bar = ProgressBar.start(following: counting.progressUpdates)
    // The report prints the failures.
    try? await OperationQueue().run(counting)
    await bar?.value
    let status = report(on: counting)
    if let trace, let tracer {
      Command.complain("\(tracer.summary)")
      try trace.write(tracer.chromeTrace())
    }
    return status
  }

  /// Prints the result and the failures, and returns the exit status.
  private static func report(on counting: CountOperation) -> Int32 {
    // The failures before a timeout are the underlying errors of the timeout.
    let failures = counting.failures.flatMap { failure in
      ((failure.error as? OperationError)?.underlyingErrors ?? []).compactMap { $0 as? OperationFailure } + [failure]
    }
    let numbers = counting.tally.numbers
    let unreadable = failures.filter { $0.error is Unreadable }.map { ($0.path.last ?? "", $0.error) }
    for (path, error) in unreadable.sorted(by: { $0.0 < $1.0 }) {
      Command.complain("\(Command.printable(path)): \(error.localizedDescription)")
    }
    if failures.contains(where: { $0.error is Interruption }) {
      Command.complain("Interrupted after \(numbers).")
      return Interrupts.exitStatus
    }
    if let timeout = counting.timeout, failures.contains(where: { OperationError.Code.timedOut ~= $0.error }) {
      Command.complain("Timed out after \(timeout): \(numbers).")
      return ExitStatus.timedOut
    }
    print(numbers)
    return unreadable.isEmpty ? ExitStatus.success : ExitStatus.incomplete
  }
}

/// Ctrl-C.
private struct Interruption: LocalizedError {
  var errorDescription: String? { "interrupted" }
}

/// The arguments.
private struct Options {
  /// The longest timeout, 30 years. Clocks overflow at much longer ones.
  private static let longestTimeout = 1e9

  private(set) var path: String
  private(set) var limit = max(2, ProcessInfo.processInfo.activeProcessorCount)
  private(set) var timeout: Duration?
  private(set) var trace: String?

  init(_ arguments: inout Arguments) throws {
    var paths: [String] = []
    while let argument = arguments.next() {
      switch argument {
      case "--limit": limit = try arguments.number(of: argument, in: 1...Int.max)
      case "--timeout": timeout = try Options.timeout(try arguments.value(of: argument, "a number of seconds"))
      case "--trace": trace = try arguments.value(of: argument, "a file to write to")
      case "--": paths += arguments.takeAll()
      case _ where argument.hasPrefix("-"): throw UsageError(unexpected: argument)
      default: paths.append(argument)
      }
    }
    guard let path = paths.first else { throw UsageError("There is no path: give a file or a folder to count.") }
    if paths.count > 1 { throw UsageError(unexpected: paths[1]) }
    self.path = path
  }

  private static func timeout(_ text: String) throws -> Duration {
    guard let seconds = Double(text), seconds > 0, seconds <= longestTimeout else {
      throw UsageError("“\(text)” is not a valid value of --timeout: give a positive number of seconds.")
    }
    return .seconds(seconds)
  }
}
