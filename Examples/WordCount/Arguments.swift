import Foundation

/// What the program is to do, as said on the command line.
struct Arguments {
  static let help = """
    Usage: WordCount [--limit N] [--timeout SECONDS] [--trace FILE] [--] PATH

    Counts the words of every file at or below PATH, which have to be UTF-8. A word is a run of characters that are not
    white space, as Unicode has it. Symbolic links below PATH are not followed.

      --limit N          how many files to read at once; without it, as many as there are processors, and 2 at least
      --timeout SECONDS  when to give up
      --trace FILE       writes what ran when into FILE, for ui.perfetto.dev, and a summary on standard error
      --help             says this
      --                 what follows is the path, also if it begins with a dash

    Exit status: 0 if all was counted, 1 if something could not be read, 2 if the arguments are wrong or the
    trace cannot be written, 124 after the timeout, 130 after Ctrl-C.
    """
  /// What a clock can measure without overflowing: thirty years.
  private static let longestTimeout = 1e9

  private(set) var path = ""
  private(set) var limit = max(2, ProcessInfo.processInfo.activeProcessorCount)
  private(set) var timeout: Duration?
  private(set) var trace: String?
  private(set) var isHelpWanted = false

  init(_ arguments: some Sequence<String>) throws {
    var paths: [String] = []
    var rest = Array(arguments)[...]
    while let argument = rest.popFirst() {
      switch argument {
      case "--help", "-h":
        isHelpWanted = true
        return
      case "--limit": limit = try Arguments.limit(rest.popFirst())
      case "--timeout": timeout = try Arguments.timeout(rest.popFirst())
      case "--trace":
        guard let path = rest.popFirst(), !path.isEmpty else { throw UsageError("--trace needs a file to write to.") }
        trace = path
      case "--":
        paths += rest
        rest = []
      case _ where argument.hasPrefix("-"): throw UsageError("There is no option “\(argument)”.")
      default: paths.append(argument)
      }
    }
    guard let path = paths.first else { throw UsageError("Say which file or folder to count: WordCount PATH.") }
    if paths.count > 1 { throw UsageError("“\(paths[1])” is one path too many: give one file or folder.") }
    self.path = path
  }

  private static func limit(_ text: String?) throws -> Int {
    guard let text else { throw UsageError("--limit needs a number.") }
    guard let limit = Int(text), limit >= 1 else {
      throw UsageError("“\(text)” cannot be the limit: give a whole number from 1 up.")
    }
    return limit
  }

  private static func timeout(_ text: String?) throws -> Duration {
    guard let text else { throw UsageError("--timeout needs a number of seconds.") }
    guard let seconds = Double(text), seconds > 0, seconds <= longestTimeout else {
      throw UsageError("“\(text)” cannot be the timeout: give a positive number of seconds.")
    }
    return .seconds(seconds)
  }
}
