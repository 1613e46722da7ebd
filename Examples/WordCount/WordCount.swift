import Foundation
import Operations

@main
struct WordCount {
  static func main() async {
    let status: ExitStatus
    do {
      let arguments = try Arguments(CommandLine.arguments.dropFirst())
      status = arguments.isHelpWanted ? help() : try await count(as: arguments)
    } catch {
      complain(error.localizedDescription)
      status = .usage
    }
    exit(status.rawValue)
  }

  private static func help() -> ExitStatus {
    print(Arguments.help)
    return .success
  }

  private static func count(as arguments: Arguments) async throws -> ExitStatus {
    let trace = arguments.trace.map(TraceFile.init)
    let counting: CountOperation
    do {
      counting = try CountOperation(path: arguments.path, limit: arguments.limit, tracer: trace?.tracer)
    } catch { throw UsageError("“\(arguments.path)” cannot be counted: \(error.localizedDescription).") }
    try trace?.prepare()
    counting.timeout = arguments.timeout
    let interrupts = interrupts(of: counting)
    defer { interrupts.cancel() }
    let drawing = isatty(STDERR_FILENO) == 1 ? Task { await ProgressBar.follow(counting.progressUpdates) } : nil
    // What it throws are the failures, which the report asks for.
    try? await OperationQueue().run(counting)
    await drawing?.value
    let status = report(on: counting)
    if let trace {
      complain("\(trace.tracer.summary)")
      try trace.write()
    }
    return status
  }

  /// The first Ctrl-C ends the counting, the second one the program.
  private static func interrupts(of counting: CountOperation) -> any DispatchSourceSignal {
    signal(SIGINT, SIG_IGN)
    let source = DispatchSource.makeSignalSource(signal: SIGINT, queue: .global())
    source.setEventHandler {
      if counting.isCancelled { exit(ExitStatus.interrupted.rawValue) }
      counting.cancel(with: Interruption())
    }
    source.activate()
    return source
  }

  private static func report(on counting: CountOperation) -> ExitStatus {
    // A timeout has the failures before it as its causes.
    let failures = counting.failures.flatMap { failure in
      ((failure.error as? OperationError)?.underlyingErrors ?? []).compactMap { $0 as? OperationFailure } + [failure]
    }
    let numbers = counting.tally.numbers
    let unreadable = failures.filter { $0.error is Unreadable }.map { ($0.path.last ?? "", $0.error) }
    for (path, error) in unreadable.sorted(by: { $0.0 < $1.0 }) {
      complain("\(inOneLine(path)): \(error.localizedDescription)")
    }
    if failures.contains(where: { $0.error is Interruption }) {
      complain("Interrupted after \(numbers).")
      return .interrupted
    }
    if let timeout = counting.timeout, failures.contains(where: { OperationError.Code.timedOut ~= $0.error }) {
      complain("Timed out after \(timeout): \(numbers).")
      return .timedOut
    }
    print(numbers)
    return unreadable.isEmpty ? .success : .incomplete
  }

  /// A path may have anything in it, line breaks and what a terminal takes for orders included.
  private static func inOneLine(_ path: String) -> String {
    path.unicodeScalars.contains { $0.properties.generalCategory == .control } ? path.debugDescription : path
  }

  private static func complain(_ message: String) { FileHandle.standardError.write(Data((message + "\n").utf8)) }
}
