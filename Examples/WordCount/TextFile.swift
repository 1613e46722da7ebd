import Foundation

/// A file that is open for reading, a chunk of whole characters at a time.
///
/// Used by one operation after the other, never by two at once.
final class TextFile: @unchecked Sendable {
  private static let chunkSize = 256 * 1024

  private let descriptor: Int32
  private let capacity: Int
  /// The beginning of a character whose rest is still in the file.
  private var brokenCharacter: [UInt8] = []
  private(set) var bytesRead = 0
  private(set) var isAtEnd = false

  /// - Parameter size: How big the file is thought to be, so that a small one gets by with a small buffer.
  init(path: String, size: Int) throws {
    // What was a file when its folder was listed may be a link or a pipe by now, and neither is to lead anywhere.
    descriptor = unsafe open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
    if descriptor < 0 { throw Unreadable.bySystem }
    capacity = min(max(size + 1, 4096), TextFile.chunkSize)
  }

  /// Not left to a `deinit`: a finished operation may live on for a while, and descriptors are few.
  func close() { _ = Foundation.close(descriptor) }

  /// Reads on. What is cut off at the end of a chunk comes with the next one; the last has all that is left.
  func read() throws -> TextChunk {
    var bytes = try readBytes()
    let length = isAtEnd ? 0 : TextFile.brokenLength(of: bytes)
    brokenCharacter = Array(bytes.suffix(length))
    bytes.removeLast(length)
    return TextChunk(bytes)
  }

  private func readBytes() throws -> [UInt8] {
    let start = brokenCharacter
    return try unsafe Array(unsafeUninitializedCapacity: start.count + capacity) { buffer, count in
      _ = unsafe buffer.initialize(fromContentsOf: start)
      count = start.count
      // A read may bring less than there is. Only when it brings nothing is nothing left.
      while count < buffer.count, !isAtEnd {
        let number = unsafe Foundation.read(descriptor, buffer.baseAddress! + count, buffer.count - count)
        if number < 0, errno == EINTR { continue }
        if number < 0 { throw Unreadable.bySystem }
        isAtEnd = number == 0
        count += number
        bytesRead += number
      }
    }
  }

  /// How many bytes at the end begin a character without completing it.
  private static func brokenLength(of bytes: [UInt8]) -> Int {
    for (length, byte) in zip(1...3, bytes.reversed()) where byte & 0b1100_0000 != 0b1000_0000 {
      let wholeLength = byte < 0b1100_0000 ? 1 : byte < 0b1110_0000 ? 2 : byte < 0b1111_0000 ? 3 : 4
      return length < wholeLength ? length : 0
    }
    return 0
  }
}
