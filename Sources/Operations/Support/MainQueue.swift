import Foundation

/// A test of whether the current code runs on the main queue.
///
/// Both the thread and a mark on the main queue are checked. `Thread.isMainThread` is false on the main queue after
/// `dispatchMain()`, which an asynchronous `main` calls on Linux. The mark is not visible in a block that the main
/// thread runs for another queue by `sync`.
enum MainQueue {
  private static let mark = {
    let mark = DispatchSpecificKey<Bool>()
    DispatchQueue.main.setSpecific(key: mark, value: true)
    return mark
  }()

  static var isCurrent: Bool { DispatchQueue.getSpecific(key: mark) == true || Thread.isMainThread }
}

extension QualityOfService {
  /// The equivalent quality of service of Dispatch.
  var dispatchQoS: DispatchQoS {
    switch self {
    case .userInteractive: .userInteractive
    case .userInitiated: .userInitiated
    case .utility: .utility
    case .background: .background
    case .default: .default
    @unknown default: .default
    }
  }
}

extension DispatchQueue {
  static func global(quality: QualityOfService) -> DispatchQueue { .global(qos: quality.dispatchQoS.qosClass) }
}
