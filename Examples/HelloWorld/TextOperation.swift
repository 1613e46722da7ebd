import Operations

/// Prints a line, on whatever thread its queue or group gives it.
final class TextOperation: AsyncOperation, @unchecked Sendable {
  private let text: String

  init(_ text: String) {
    self.text = text
    super.init()
    named(text)
  }

  override func execute() {
    print(text)
    finish()
  }
}
