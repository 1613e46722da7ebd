import Foundation

extension DispatchQueue: ContinuingQueue {
  func continueOperation(at quality: QualityOfService, _ body: @escaping @Sendable () -> Void) {
    async(qos: quality.dispatchQoS, execute: body)
  }

  private static let mainMark = {
    let mark = DispatchSpecificKey<Bool>()
    main.setSpecific(key: mark, value: true)
    return mark
  }()

  /// Whether this code runs on the main queue. `Thread.isMainThread` is false there after `dispatchMain()`, which an
  /// asynchronous `main` calls on Linux. The mark is not visible in a `sync` block of another queue.
  static var isMainCurrent: Bool { getSpecific(key: mainMark) == true || Thread.isMainThread }
}

/// A closure that is called and released on the main thread.
final class MainClosure<Input: Sendable>: @unchecked Sendable {
  private var body: (@MainActor @Sendable (Input) -> Void)?

  init(_ body: @escaping @MainActor @Sendable (Input) -> Void) { self.body = body }

  func call(_ input: Input) { DispatchQueue.main.async { [self] in MainActor.assumeIsolated { body?(input) } } }

  deinit {
    if DispatchQueue.isMainCurrent { return }
    // Moves the closure, because this thread must not keep the last reference.
    nonisolated(unsafe) var body = body.take()
    DispatchQueue.main.async { _ = unsafe body.take() }
  }
}

extension QualityOfService {
  // An operation whose quality was never set takes that of the thread that makes it. A group makes its runners, and an
  // operation its attempts, on whatever thread something has finished. Both therefore read the quality of the thread that
  // starts them, once. Dispatch lends no more than user-initiated. Linux has no quality of service.
  #if canImport(Darwin)
  static var current: Self {
    switch qos_class_self() {
    case QOS_CLASS_USER_INTERACTIVE, QOS_CLASS_USER_INITIATED: .userInitiated
    case QOS_CLASS_UTILITY: .utility
    case QOS_CLASS_BACKGROUND: .background
    default: .default
    }
  }
  #else
  static let current = Self.default
  #endif

  var orCurrent: Self { self == .default ? .current : self }

  var taskPriority: TaskPriority {
    switch self {
    case .userInteractive, .userInitiated: .userInitiated
    case .utility: .utility
    case .background: .background
    default: .medium
    }
  }

  var dispatchQoS: DispatchQoS {
    switch self {
    case .userInteractive: .userInteractive
    case .userInitiated: .userInitiated
    case .utility: .utility
    case .background: .background
    default: .default
    }
  }
}

extension OperationQueue {
  /// The name, unless it is Foundation's default, which contains only the class and the address.
  var givenName: String? {
    if self === OperationQueue.main { return "main" }
    return name.flatMap { $0.isEmpty || $0.hasPrefix("NSOperationQueue 0x") ? nil : $0 }
  }
}

/// A queue that can run a part of an operation while that operation occupies a slot.
protocol ContinuingQueue: Sendable {
  /// Runs `body` later, where `execute()` of the queue's operations runs, at the given quality if the queue has several.
  func continueOperation(at quality: QualityOfService, _ body: @escaping @Sendable () -> Void)
}
