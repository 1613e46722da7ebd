import Foundation

/// Where, and at which quality of service, an operation executes and continues after a wait or a back-off.
struct ExecutionPlace: Sendable {
  /// What runs inside the operation takes this quality, because a timer's thread has another one.
  let quality: QualityOfService
  /// Nil for any thread of the system, because the operation may occupy the only slot of its queue.
  let queue: (any ContinuingQueue)?

  static func current(quality: QualityOfService) -> Self {
    // On Linux, Foundation returns nil in a block of the main queue that another thread than the main thread runs.
    let queue = OperationQueue.current ?? (DispatchQueue.isMainCurrent ? .main : nil)
    // Without a queue of the package, the main queue, or the underlying queue of an OperationQueue.
    let place = unsafe queue as? any ContinuingQueue ?? queue?.underlyingQueue
    return Self(quality: quality.orCurrent, queue: place)
  }

  func run(_ body: @escaping @Sendable () -> Void) {
    if let queue { return queue.continueOperation(at: quality, body) }
    DispatchQueue.global(qos: quality.dispatchQoS.qosClass).async(execute: body)
  }
}
