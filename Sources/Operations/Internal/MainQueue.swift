import Foundation

/// Whether the code that asks is running on the main queue.
///
/// `Thread.isMainThread` is false there once the program has called `dispatchMain()`, as an asynchronous `main` does on
/// Linux, and the main queue's own mark cannot be seen from a block that the main thread runs for another queue
/// (`sync`): either is enough.
enum MainQueue {
  private static let mark = {
    let mark = DispatchSpecificKey<Bool>()
    DispatchQueue.main.setSpecific(key: mark, value: true)
    return mark
  }()

  static var isCurrent: Bool { DispatchQueue.getSpecific(key: mark) == true || Thread.isMainThread }
}
