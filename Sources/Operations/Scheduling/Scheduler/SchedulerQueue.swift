import Foundation

/// The serial queue of a scheduler. Adding an operation seals the open segment, so events keep their order around it.
final class SchedulerQueue: OperationQueue, ContinuingQueue, @unchecked Sendable {
  private let label: String
  private let dispatchQueue: DispatchQueue
  weak var scheduler: SerialScheduler?

  init(_ label: String, _ qualityOfService: QualityOfService) {
    self.label = label
    dispatchQueue = DispatchQueue(label: label, qos: qualityOfService.dispatchQoS)
    super.init()
    name = label
    self.qualityOfService = qualityOfService
    maxConcurrentOperationCount = 1
    // A serial dispatch queue gets a thread immediately. A concurrent queue gets a thread only while there are fewer
    // threads than cores, so a scheduler could wait up to a second while other schedulers are blocked in `wait`.
    unsafe super.underlyingQueue = dispatchQueue
  }

  override var underlyingQueue: DispatchQueue? {
    get { unsafe super.underlyingQueue }
    set {
      misuse("“\(label)” depends on its own dispatch queue. Set the underlyingQueue of another queue.")
    }
  }

  private var isCurrent: Bool { scheduler?.isCurrent ?? (OperationQueue.current === self) }

  func addDrain(_ drain: DrainOperation) { super.addOperation(drain) }

  /// Runs `body` without adding an operation. The operation that `body` belongs to occupies the queue's only slot.
  func continueOperation(at quality: QualityOfService, _ body: @escaping @Sendable () -> Void) {
    dispatchQueue.async { [self] in SerialScheduler.running.withValue(scheduler, body) }
  }

  /// Enqueues an operation between the events before and after. A queue without its scheduler has no events.
  private func seal(_ enqueue: () -> Void) {
    guard let scheduler else { return enqueue() }
    scheduler.ordering.withLock {
      enqueue()
      // The drain of the open segment precedes the operation, even if the operation's `isReady` opened the segment.
      _ = scheduler.mailbox.withLock { $0.seal() }
    }
  }

  override func addOperation(_ operation: Operation) { seal { super.addOperation(operation) } }

  override func addOperation(_ block: @escaping @Sendable () -> Void) { addOperation(BlockOperation(block: block)) }

  /// Every operation is a barrier in a serial queue, and Foundation's implementation can deadlock on Linux.
  override func addBarrierBlock(_ barrier: @escaping @Sendable () -> Void) { addOperation(barrier) }

  override func addOperations(_ operations: [Operation], waitUntilFinished: Bool) {
    if waitUntilFinished, isCurrent {
      misuse("“\(label)” cannot wait for operations in its own queue. Pass false for waitUntilFinished.")
    }
    seal { super.addOperations(operations, waitUntilFinished: false) }
    if waitUntilFinished { for operation in operations { operation.waitUntilFinished() } }
  }

  override func waitUntilAllOperationsAreFinished() {
    if isCurrent {
      misuse("“\(label)” cannot wait for its own queue, which the current event occupies. Wait on another thread.")
    }
    super.waitUntilAllOperationsAreFinished()
  }

  override var isSuspended: Bool {
    get { super.isSuspended }
    set {
      let scheduler = scheduler
      scheduler?.set(.suspended, to: newValue)
      // Foundation notifies observers and reads `isReady`, so no lock is held.
      super.isSuspended = newValue
      // The flag and the queue must agree even if two threads set them.
      scheduler?.ordering.withLock { scheduler?.set(.suspended, to: super.isSuspended) }
    }
  }

  override var maxConcurrentOperationCount: Int {
    get { super.maxConcurrentOperationCount }
    set {
      if newValue != 1 {
        misuse("The queue of the scheduler “\(label)” runs one operation at a time. Use another queue for more.")
      }
      super.maxConcurrentOperationCount = newValue
    }
  }
}
