import Foundation

/// The member of a group that runs a plain Foundation operation.
///
/// It depends on what the plain operation depends on, and starts the plain operation, which is in no queue until then.
/// On Linux, Foundation keeps unretained pointers from an operation to its dependents, so the member keeps the plain
/// operation alive, and removes its dependencies at its end.
final class PlainMember: AsyncOperation, @unchecked Sendable {
  /// By plain operation, which has at most one member.
  private static let entries = Locked<[ObjectIdentifier: DependencyLedger.WeakDependent]>([:])

  private let operation: Operation

  private init(_ operation: Operation) {
    self.operation = operation
    super.init()
  }

  deinit {
    let (id, key) = (ObjectIdentifier(self), ObjectIdentifier(operation))
    PlainMember.entries.withLock { entries in
      if entries[key]?.id == id { entries[key] = nil }
    }
  }

  /// Returns the member that runs a plain operation, or nil if there is none.
  static func of(_ operation: Operation) -> PlainMember? {
    entries.withLock { entries in
      guard let entry = entries[ObjectIdentifier(operation)] else { return nil }
      return entry.operation as? PlainMember
    }
  }

  /// Returns the member that runs a plain operation, or a new one. Nil if the operation has been started.
  static func make(for operation: Operation) -> PlainMember? {
    if let member = of(operation) { return member }
    if operation.isExecuting || operation.isFinished { return nil }
    let new = PlainMember(operation)
    new.adoptChanges()
    return entries.withLock { entries in
      if let entry = entries[ObjectIdentifier(operation)], let earlier = entry.operation as? PlainMember {
        return earlier
      }
      entries[ObjectIdentifier(operation)] = DependencyLedger.WeakDependent(new)
      return new
    }
  }

  override var represented: Operation { operation }

  override var finishesByItself: Bool { true }

  override var qualityOfService: QualityOfService {
    get { operation.qualityOfService }
    set { operation.qualityOfService = newValue }
  }

  /// The stored value is the one that the group has read last.
  override var queuePriority: Operation.QueuePriority {
    get { operation.queuePriority }
    set { super.queuePriority = newValue }
  }

  override func adoptChanges() {
    if operation.isCancelled { return cancel() }
    queuePriority = operation.queuePriority
    let unfinished = operation.unfinishedDependencies
    if unfinished.isEmpty { return }
    let known = Set(dependencies.map { ObjectIdentifier($0) })
    for dependency in unfinished where !known.contains(ObjectIdentifier(dependency)) {
      _ = addDependencyIfPending(dependency)
    }
  }

  override func takeOperationsToCancel() -> [Operation] { [operation] }

  override func execute() { start { self.finish() } }

  override func finishUnexecuted() {
    operation.cancelAsMember()
    start { self.finishNow() }
  }

  private func start(then end: @escaping @Sendable () -> Void) {
    if operation.isReady, !operation.isFinished {
      operation.start()
    } else if !operation.isFinished {
      // The operation overrides `isReady`, or has just gained a dependency.
      let queue = OperationQueue()
      queue.qualityOfService = OperationQueue.current?.qualityOfService ?? .default
      queue.addOperation(operation)
      // On Linux, Foundation may need to check an operation that overrides `isReady` twice.
      for _ in 0..<2 { queue.nudge() }
    }
    if operation.isFinished { return operationDidFinish(end) }
    FinishRelay { self.operationDidFinish(end) }.wait(for: [operation])
  }

  private func operationDidFinish(_ end: () -> Void) {
    operation.forgetDependencies()
    end()
  }
}

extension AsyncOperation {
  /// Makes a cancelled operation finish that is in no queue.
  func startCancelled() { _ = startAsMember(by: nil) }
}

extension Operation {
  /// The operation that groups, errors and reports show instead of this one.
  var shownOperation: Operation { (self as? AsyncOperation)?.represented ?? self }

  /// The operation as the member of a group: itself or, if it is a plain Foundation operation, the member that runs it.
  /// Nil for a plain operation in no group.
  var asMember: AsyncOperation? { self as? AsyncOperation ?? PlainMember.of(self) }

  /// As far as the package can detect.
  var isFreePlainOperation: Bool {
    if isExecuting || isFinished { return false }
    return PlainMember.of(self)?.isFree ?? true
  }

  /// Cancels a plain operation, which does not wait for its dependencies any more. On Linux, plain operations on a cycle
  /// that finish at once would deadlock, because each locks itself and then its dependents.
  func cancelAsMember() {
    if !isFinished { removeDependencies(unfinishedDependencies) }
    // Even if it is cancelled already: Foundation on Linux counts fewer than zero dependencies if one of them finishes
    // before it is removed from such an operation, and starts from zero then.
    cancel()
  }

  /// Removes the dependencies of a plain operation that has finished, perhaps before them. When a dependency finishes
  /// on Linux, Foundation uses a pointer to the operation, even if it has been released. Before the end of the
  /// operation, Foundation would count fewer than zero dependencies.
  fileprivate func forgetDependencies() { removeDependencies(dependencies) }

  private static let removalLock = NSRecursiveLock()

  /// On Linux, `removeDependency` locks the dependency and then this operation. Two operations that wait for each other
  /// would deadlock. The lock is recursive, because Foundation reads `isReady`, which a subclass can override.
  private func removeDependencies(_ operations: [Operation]) {
    if operations.isEmpty { return }
    Operation.removalLock.withLock { for operation in operations { removeDependency(operation) } }
  }
}
