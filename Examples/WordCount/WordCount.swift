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
    static let interrupted: Int32 = 130
  }

  static func main() async {
    await Command.run(usage: usage) { arguments in try await count(with: try Options(&arguments)) }
  }

  private static func count(with options: Options) async throws -> Int32 {
    let trace = options.trace.map(TraceFile.init)
    let counting: CountOperation
    do {
      counting = try CountOperation(path: options.path, limit: options.limit, tracer: trace?.tracer)
    } catch { throw UsageError("The path “\(options.path)” cannot be counted: \(error.localizedDescription).") }
    counting.timeout = options.timeout
    // Detects a path that cannot be written before the count.
    do { try trace?.create() } catch { throw UsageError(error.localizedDescription) }
    let interrupts = handleInterrupts(of: counting)
    defer { interrupts.cancel() }
    let bar = isatty(STDERR_FILENO) == 1 ? Task { await ProgressBar.follow(counting.progressUpdates) } : nil
    // The report prints the failures.
    try? await OperationQueue().run(counting)
    await bar?.value
    let status = report(on: counting)
    if let trace {
      Command.complain("\(trace.tracer.summary)")
      try trace.write()
    }
    return status
  }

  /// Cancels the count at the first Ctrl-C, and exits at the second.
  private static func handleInterrupts(of counting: CountOperation) -> any DispatchSourceSignal {
    signal(SIGINT, SIG_IGN)
    let source = DispatchSource.makeSignalSource(signal: SIGINT, queue: .global())
    source.setEventHandler {
      if counting.isCancelled { exit(ExitStatus.interrupted) }
      counting.cancel(with: Interruption())
    }
    source.activate()
    return source
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
      Command.complain("\(printable(path)): \(error.localizedDescription)")
    }
    if failures.contains(where: { $0.error is Interruption }) {
      Command.complain("Interrupted after \(numbers).")
      return ExitStatus.interrupted
    }
    if let timeout = counting.timeout, failures.contains(where: { OperationError.Code.timedOut ~= $0.error }) {
      Command.complain("Timed out after \(timeout): \(numbers).")
      return ExitStatus.timedOut
    }
    print(numbers)
    return unreadable.isEmpty ? ExitStatus.success : ExitStatus.incomplete
  }

  /// Escapes the path if it contains control characters, such as line breaks and commands to the terminal.
  private static func printable(_ path: String) -> String {
    path.unicodeScalars.contains { $0.properties.generalCategory == .control } ? path.debugDescription : path
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

/// A progress bar on the terminal.
private struct ProgressBar {
  private static let width = 40
  private var shown = ""

  /// Draws the updates until they end, and then erases the bar.
  static func follow(_ updates: AsyncStream<Double>) async {
    var bar = ProgressBar()
    for await fraction in updates { bar.show(fraction) }
    Command.write("\r\u{1B}[K")
  }

  private mutating func show(_ fraction: Double) {
    let fraction = min(max(fraction, 0), 1)
    let filled = Int(fraction * Double(ProgressBar.width))
    let bar = String(repeating: "#", count: filled) + String(repeating: "·", count: ProgressBar.width - filled)
    let line = "\(bar) \(Int(fraction * 100)) %"
    if line == shown { return }
    Command.write("\r" + line + "\u{1B}[K")
    shown = line
  }
}

/// A trace and the file for it.
private struct TraceFile {
  /// The file cannot be written.
  private struct Unwritable: LocalizedError {
    let errorDescription: String?
  }

  let tracer = OperationTracer()
  let path: String

  /// Creates the file, which shows whether it can be written.
  func create() throws { try write(Data()) }

  func write() throws { try write(tracer.chromeTrace()) }

  private func write(_ data: Data) throws {
    do { try data.write(to: URL(filePath: path)) } catch {
      throw Unwritable(errorDescription: "The file “\(path)” cannot be written: \(error.localizedDescription)")
    }
  }
}
