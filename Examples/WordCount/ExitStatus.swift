/// How the program ends, as the shell sees it.
enum ExitStatus: Int32 {
  case success = 0
  /// Some files or folders could not be read.
  case incomplete = 1
  case usage = 2
  case timedOut = 124
  case interrupted = 130
}
