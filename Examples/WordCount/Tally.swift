import Synchronization

/// How far the counting has come. May be read at any time, also when it was interrupted.
final class Tally: Sendable {
  struct Numbers {
    /// Files that have been read to their end.
    var files = 0
    /// Words, those in the files that are being read included.
    var words = 0
    /// Files that have been found, and not been read.
    var waitingFiles = 0
  }

  private let storage = Mutex(Numbers())

  var numbers: Numbers { storage.withLock { $0 } }

  func change(_ body: (inout Numbers) -> Void) { storage.withLock { body(&$0) } }
}

extension Tally.Numbers: CustomStringConvertible {
  var description: String {
    "\(words) \(words == 1 ? "word" : "words") in \(files) \(files == 1 ? "file" : "files")"
  }
}
