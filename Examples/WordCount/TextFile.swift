import ExampleSupport
import Foundation

/// A file that is open for reading, one chunk of whole characters at a time.
///
/// One operation after the other uses it, never two at the same time.
final class TextFile: @unchecked Sendable {
  private static let chunkSize = 256 * 1024

  private let descriptor: Int32
  private let capacity: Int
  /// The start of a character whose rest has not been read.
  private var brokenCharacter: [UInt8] = []
  private(set) var bytesRead = 0
  private(set) var isAtEnd = false

  /// - Parameter size: The expected size of the file. A small file needs a small buffer.
  init(path: FilePath, size: Int) throws {
    descriptor = try path.open(O_NONBLOCK)
    capacity = min(max(size + 1, 4096), TextFile.chunkSize)
  }

  /// Closes the file. A `deinit` would come too late, because a group keeps finished members for a while.
  func close() { _ = Foundation.close(descriptor) }

  /// Reads the next chunk. A character that is incomplete at its end belongs to the next chunk, except at the end of
  /// the file.
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
      // A read may return less than there is. Only a read that returns nothing is the end.
      while count < buffer.count, !isAtEnd {
        let number = unsafe Foundation.read(descriptor, buffer.baseAddress! + count, buffer.count - count)
        if number < 0, errno == EINTR { continue }
        if number < 0 { throw Unreadable.lastSystemError }
        isAtEnd = number == 0
        count += number
        bytesRead += number
      }
    }
  }

  /// Returns the number of bytes at the end that start a character without completing it.
  private static func brokenLength(of bytes: [UInt8]) -> Int {
    for (length, byte) in zip(1...3, bytes.reversed()) where byte & 0b1100_0000 != 0b1000_0000 {
      let wholeLength = byte < 0b1100_0000 ? 1 : byte < 0b1110_0000 ? 2 : byte < 0b1111_0000 ? 3 : 4
      return length < wholeLength ? length : 0
    }
    return 0
  }
}

/// A piece of text that passes from the operation that reads it to the operation that counts it.
///
/// Finished operations keep their values, and a group keeps finished members for a while. So the consumer takes the
/// text out, and only the chunks in progress occupy memory.
final class TextChunk: @unchecked Sendable {
  private let bytes: Protected<[UInt8]>

  init(_ bytes: [UInt8]) { self.bytes = Protected(bytes) }

  /// Returns the text, and leaves the chunk empty.
  func take() throws -> String {
    let bytes = self.bytes.withLock { bytes in
      defer { bytes = [] }
      return bytes
    }
    guard let text = String(validating: bytes, as: UTF8.self) else { throw Unreadable("is not valid UTF-8") }
    return text
  }
}

/// The reason why a file or a folder could not be read. The failed operation has the name of the file or folder.
struct Unreadable: LocalizedError {
  let reason: String

  init(_ reason: String) { self.reason = reason }

  /// The error of the system call that has just failed.
  static var lastSystemError: Unreadable { Unreadable(unsafe String(cString: strerror(errno))) }

  var errorDescription: String? { reason }
}
