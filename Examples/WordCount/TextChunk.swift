import Synchronization

/// A piece of a text on its way from the operation that reads it to the one that counts it.
///
/// An operation keeps its value as long as it lives, and a group lets its finished members go a few dozen at a time. So
/// the text is taken out of here, not copied: what is in memory is what is being worked on.
final class TextChunk: Sendable {
  private let bytes: Mutex<[UInt8]>

  init(_ bytes: [UInt8]) { self.bytes = Mutex(bytes) }

  /// The text, once: it is empty afterwards.
  func take() throws -> String {
    let bytes = bytes.withLock { bytes in
      defer { bytes = [] }
      return bytes
    }
    guard let text = String(validating: bytes, as: UTF8.self) else { throw Unreadable("is not valid UTF-8") }
    return text
  }
}
