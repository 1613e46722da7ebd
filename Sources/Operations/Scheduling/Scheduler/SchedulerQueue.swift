import Foundation

/// A queue of one, in which operations keep their place among the events of its scheduler.
///
/// Whatever way an operation comes in, the events before it are sealed off: their drain is in front of it, and those
/// that come later get another one behind it.
final class SchedulerQueue: OperationQueue, @unchecked Sendable {
  private let core: SchedulerCore
  private let dispatchQueue: DispatchQueue
  /// The scheduler holds the queue.
  weak var scheduler: SerialScheduler?

  init(_ core: SchedulerCore, _ qualityOfService: QualityOfService) {
    self.core = core
    dispatchQueue = DispatchQueue(label: core.name, qos: qualityOfService.dispatchClass)
    super.init()
    name = core.name
    self.qualityOfService = qualityOfService
    maxConcurrentOperationCount = 1
    // A serial queue gets a thread at once, a concurrent one only while there are fewer than cores: a scheduler whose
    // neighbours are blocked in `wait` would have to wait for a second.
    unsafe super.underlyingQueue = dispatchQueue
  }

  override var underlyingQueue: DispatchQueue? {
    get { unsafe super.underlyingQueue }
    set {
      misuse(
        "The queue of the scheduler “\(core.name)” has a Dispatch queue of its own, which its events count on. Set the "
          + "underlyingQueue of another queue."
      )
    }
  }

  /// Adds the drain of a segment, without sealing it.
  func addDrain(_ drain: DrainOperation) { super.addOperation(drain) }

  override func addOperation(_ operation: Operation) { core.seal { super.addOperation(operation) } }

  override func addOperation(_ block: @escaping @Sendable () -> Void) { addOperation(BlockOperation(block: block)) }

  /// As an ordinary operation: in a queue of one each is a barrier, and Foundation's own can deadlock on Linux.
  override func addBarrierBlock(_ barrier: @escaping @Sendable () -> Void) { addOperation(barrier) }

  override func addOperations(_ operations: [Operation], waitUntilFinished: Bool) {
    if waitUntilFinished, scheduler?.isCurrent ?? (OperationQueue.current === self) {
      misuse("“\(core.name)” cannot wait for operations of its own queue from within: they run after it. Do not wait.")
    }
    core.seal { super.addOperations(operations, waitUntilFinished: false) }
    if waitUntilFinished { for operation in operations { operation.waitUntilFinished() } }
  }

  override func waitUntilAllOperationsAreFinished() {
    if scheduler?.isCurrent ?? (OperationQueue.current === self) {
      misuse("“\(core.name)” cannot wait from within until its queue is empty: what waits is in it. Do not wait.")
    }
    super.waitUntilAllOperationsAreFinished()
  }

  /// The drain that is at it has to hear of it, too.
  override var isSuspended: Bool {
    get { super.isSuspended }
    set {
      // Two threads at it must not leave the drain in another mode than the queue.
      core.exclusively {
        if newValue { core.mode.insert(.suspended) } else { core.mode.remove(.suspended) }
        super.isSuspended = newValue
      }
    }
  }

  override var maxConcurrentOperationCount: Int {
    get { super.maxConcurrentOperationCount }
    set {
      if newValue != 1 {
        misuse(
          "The queue of the scheduler “\(core.name)” runs one operation at a time, for its objects depend on that: it "
            + "cannot run \(newValue). Use another queue."
        )
      }
      super.maxConcurrentOperationCount = newValue
    }
  }
}

extension QualityOfService {
  var dispatchClass: DispatchQoS {
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
