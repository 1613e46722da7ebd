import Foundation

/// Detects whether the current code runs on the main queue.
///
/// Two checks are needed. `Thread.isMainThread` is false on the main queue after `dispatchMain()`, which an asynchronous
/// `main` calls on Linux. The main queue's own mark is not visible in a block that the main thread runs for another queue
/// by `sync`.
enum MainQueue {
  private static let mark = {
    let mark = DispatchSpecificKey<Bool>()
    DispatchQueue.main.setSpecific(key: mark, value: true)
    return mark
  }()

  static var isCurrent: Bool { DispatchQueue.getSpecific(key: mark) == true || Thread.isMainThread }
}
