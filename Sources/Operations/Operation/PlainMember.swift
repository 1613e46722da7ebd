import Foundation

/// The member of a group that runs a plain Foundation operation. It depends on what the plain operation depends on, and
/// starts it. The plain operation is in no queue until then. On Linux, Foundation keeps unretained pointers from an
/// operation to its dependents, so the member keeps the plain operation alive, and removes its dependencies at its end.
final class PlainMember: AsyncOperation, @unchecked Sendable {
  /// By plain operation, from the addition until the plain operation has finished or the group is released unstarted. Not
  /// weak, because that would double the cost of every reference to a member.
  private static let members = Locked<[ObjectIdentifier: PlainMember]>([:])

  fileprivate let operation: Operation

  private init(_ operation: Operation) {
    self.operation = operation
    super.init()
  }

  static func of(_ operation: Operation) -> PlainMember? { members.withLock { $0[ObjectIdentifier(operation)] } }

  /// Returns the member that runs a plain operation, or a new one. Nil if the operation has been started elsewhere.
  static func make(for operation: Operation) -> PlainMember? {
    if operation.isExecuting || operation.isFinished { return of(operation) }
    let new = PlainMember(operation)
    return members.withLock { members in
      let member = members[ObjectIdentifier(operation)] ?? new
      members[ObjectIdentifier(operation)] = member
      return member
    }
  }

  func forget() { _ = PlainMember.members.withLock { $0.removeValue(forKey: ObjectIdentifier(operation)) } }

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

  /// Adopts the changes of the plain operation. Called when the group starts, and before it starts the member.
  func adoptChanges() {
    if operation.isCancelled { return cancel() }
    if super.queuePriority != operation.queuePriority { queuePriority = operation.queuePriority }
    // Those that have finished as well: one of them may have failed in this group.
    let current = operation.dependencies.map { $0.asMember ?? $0 }
    if current.isEmpty { return }
    let known = Set(dependencies.flatMap { [ObjectIdentifier($0), ObjectIdentifier($0.represented)] })
    for dependency in current where !known.contains(ObjectIdentifier(dependency)) {
      _ = addDependencyIfPending(dependency)
    }
  }

  override func execute() {
    if operation.isReady, !operation.isFinished {
      operation.start()
    } else if !operation.isFinished {
      // The operation overrides `isReady`, or has just gained a dependency.
      let queue = OperationQueue()
      queue.qualityOfService = .current
      queue.addOperation(operation)
      // On Linux, Foundation may need to check an operation that overrides `isReady` twice.
      for _ in 0..<2 { queue.nudge() }
    }
    if operation.isFinished { return operationDidFinish() }
    FinishRelay { self.operationDidFinish() }.wait(for: operation)
  }

  override func finishUnexecuted() {
    operation.cancelAsMember()
    // A cancelled operation finishes when it is started.
    execute()
  }

  private func operationDidFinish() {
    // When a dependency finishes on Linux, Foundation uses a pointer to the plain operation, even a released one. Before
    // the end of the operation, Foundation would count fewer than zero dependencies.
    operation.removeDependencies(operation.dependencies)
    forget()
    finishNow()
  }
}

extension AsyncOperation {
  /// Makes a cancelled operation finish that is in no queue.
  func startCancelled() { _ = startOrResume(by: nil, hasSlot: false) }
}

extension Operation {
  /// The plain Foundation operation that this one runs in a group, which errors and reports show. Otherwise itself.
  var represented: Operation { (self as? PlainMember)?.operation ?? self }

  /// The member of a group: itself or the one that runs a plain operation. Nil for a plain operation in no group.
  var asMember: AsyncOperation? { self as? AsyncOperation ?? PlainMember.of(self) }

  var closureOrigin: EventOrigin? { (self as? AsyncOperation)?.origin }

  /// As far as the package can detect.
  var isFreePlainOperation: Bool { !isExecuting && !isFinished && PlainMember.of(self)?.isFree ?? true }

  /// Cancels a plain operation, which does not wait for its dependencies any more. On Linux, plain operations on a cycle
  /// that finish at once would deadlock, because each locks itself and then its dependents.
  func cancelAsMember() {
    if !isFinished { removeDependencies(unfinishedDependencies) }
    // Even if it is cancelled already: Foundation on Linux counts fewer than zero dependencies if one of them finishes
    // before it is removed from such an operation, and starts from zero then.
    cancel()
  }

  private static let removalLock = NSRecursiveLock()

  /// On Linux, `removeDependency` locks the dependency and then this operation. Two operations that wait for each other
  /// would deadlock. The lock is recursive, because Foundation reads `isReady`, which a subclass can override.
  fileprivate func removeDependencies(_ operations: [Operation]) {
    if operations.isEmpty { return }
    Operation.removalLock.withLock { for operation in operations { removeDependency(operation) } }
  }
}
