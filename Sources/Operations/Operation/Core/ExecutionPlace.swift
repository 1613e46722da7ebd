import Foundation

/// The place where an operation executes.
///
/// An operation leaves its thread while its conditions are evaluated, while it waits for a key, and while it backs off.
/// It then continues at its place, so that preparation does not change where an operation executes.
enum ExecutionPlace: Sendable {
  /// A queue of the package.
  case queue(any ContinuingQueue)
  /// The main queue, or the underlying queue of an OperationQueue.
  case underlying(DispatchQueue)
  /// A thread of the system. The operation does not continue in its queue, because it may occupy the queue's only slot.
  case anyThread(QualityOfService)

  /// The place of the running code.
  static func current(quality: QualityOfService) -> Self {
    guard let queue = OperationQueue.current else { return .anyThread(quality) }
    if let queue = queue as? any ContinuingQueue { return .queue(queue) }
    return unsafe queue.underlyingQueue.map(Self.underlying) ?? .anyThread(quality)
  }

  /// Schedules `body` to run at this place.
  func run(_ body: @escaping @Sendable () -> Void) {
    switch self {
    case .queue(let queue): queue.continueOperation(body)
    case .underlying(let queue): queue.async(execute: body)
    case .anyThread(let quality): DispatchQueue.global(quality: quality).async(execute: body)
    }
  }

  /// Whether the operation must continue at this place, instead of on any thread.
  var isParticular: Bool { if case .anyThread = self { false } else { true } }
}

extension AsyncOperation {
  /// Returns the place where the operation executes. The first call must be on the thread that started the operation.
  ///
  /// The place is kept until the operation ends, because `OperationQueue.current` may be nil when the operation
  /// continues.
  @discardableResult
  final func keepPlace() -> ExecutionPlace {
    if let place = core.withLock({ $0.extras?.place }) { return place }
    let place = ExecutionPlace.current(quality: qualityOfService)
    core.withLock { core in
      if core.lifecycle.phase != .ending, core.lifecycle.phase != .finished { core.makeExtras().place = place }
    }
    return place
  }
}
