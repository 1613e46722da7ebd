import Foundation

extension DispatchQueue {
  private static let mainMark = {
    let mark = DispatchSpecificKey<Bool>()
    main.setSpecific(key: mark, value: true)
    return mark
  }()

  /// Whether the current code runs on the main queue.
  ///
  /// `Thread.isMainThread` is false there after `dispatchMain()`, which an asynchronous `main` calls on Linux. The mark
  /// is not visible in a block that the main thread runs for another queue by `sync`.
  static var isMainCurrent: Bool { getSpecific(key: mainMark) == true || Thread.isMainThread }
}

extension QualityOfService {
  // An operation and a queue without a quality of their own take that of the thread that adds. A group adds its members
  // on whatever thread a member has finished, so it reads the quality of its own thread once, at its start. Dispatch
  // lends no more than user-initiated. Linux has no quality of service.
  #if canImport(Darwin)
  static var current: Self {
    switch DispatchQoS.QoSClass(rawValue: qos_class_self()) {
    case .userInteractive, .userInitiated: .userInitiated
    case .utility: .utility
    case .background: .background
    default: .default
    }
  }
  #else
  static let current = Self.default
  #endif

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

/// An `OperationQueue` that can run a part of an operation while that operation occupies a slot.
protocol ContinuingQueue: OperationQueue {
  /// Runs `body` later, where `execute()` of the queue's operations runs.
  func continueOperation(_ body: @escaping @Sendable () -> Void)
}
