public import Foundation

/// An `OperationQueue` or a ``GroupOperation``, whose methods run operations and closures, and await their results.
///
/// In a group, what a method runs is a member, whose failure is the group's as well, unless a method states otherwise. A
/// group starts its members when it starts, so a group that stays open is a queue of one's own: see
/// ``GroupOperation/started()``. A group that has finished refuses an operation with ``OperationError/Code/shutDown``. A
/// cancelled group cancels it without an error.
///
/// Only these two types can conform to the protocol.
public protocol OperationContainer: AnyObject, Sendable {
  /// The operations that have not finished, in the order in which they were added.
  var operations: [Operation] { get }
  /// Which of the two types this is. No other code can create the value.
  var _place: _ContainerPlace { get }
}

/// The value that no other type can provide.
public struct _ContainerPlace: Sendable {
  fileprivate let place: WaitPlace
}

extension OperationQueue: OperationContainer {
  /// This queue.
  public var _place: _ContainerPlace { _ContainerPlace(place: .queue(self)) }
}

extension GroupOperation: OperationContainer {
  /// This group.
  public final var _place: _ContainerPlace { _ContainerPlace(place: .group(self)) }
}

extension OperationContainer {
  var place: WaitPlace { _place.place }

  func add(_ operation: AsyncOperation) {
    switch place {
    case .queue(let queue): queue.addOperation(operation)
    case .group(let group): group.addOperation(operation)
    }
  }

  /// Adds an operation, which must be free, and what it waits for, as part of the same work.
  func addWithDependencies(_ operation: AsyncOperation, for work: Work? = nil) {
    let hasDependencies = operation.core.withLock { !$0.ledger.dependencies.isEmpty }
    let mayWait = hasDependencies || (operation as? GroupOperation)?.engine.membersMayWait == true
    let dependencies = mayWait ? freeDependencies(of: operation) : []
    if let work { for own in dependencies + [operation] { own.belong(to: work) } }
    switch place {
    case .group(let group):
      let isNamed: Set = [ObjectIdentifier(operation)]
      group.engine.add(dependencies + [operation], skipping: .unnamed(except: isNamed), to: group)
    case .queue(let queue):
      operation.takePlace(in: queue)
      if dependencies.isEmpty { return queue.enqueue(operation) }
      queue.enqueue(dependencies.filter { $0.takePlaceIfFree(in: queue) } + [operation])
    }
  }

  func freeDependencies(of last: AsyncOperation) -> [AsyncOperation] {
    // Cancelled operations do not wait, but other operations may wait for their dependencies.
    let snapshot = WaitSnapshot(of: [last], scope: .free)
    let free = snapshot.nodes.indices.reversed().filter { !snapshot.isStart($0) }
      .compactMap { snapshot.nodes[$0].operation as? AsyncOperation }.filter { $0 !== last && $0.isFree }
    if free.isEmpty { return [] }
    // Foundation's own methods may have added some to this queue. Another thread may add one that two graphs share.
    let enqueued = Set(operations.map { ObjectIdentifier($0) })
    return free.filter { !enqueued.contains(ObjectIdentifier($0)) }
  }

  // MARK: Finding and cancelling

  /// Returns the waiting and executing operations that have this name, in the order in which they were added.
  public func operations(named name: String) -> [Operation] { operations.filter { $0.name == name } }

  /// Cancels the operations that have this name, but none inside groups among them.
  ///
  /// Members of a group that are cancelled without an error are no failures of it.
  ///
  /// - Returns: The number of operations that this call cancelled, without those that were cancelled before.
  @discardableResult
  public func cancelOperations(named name: String) -> Int {
    cancel(place.slots.operations.filter { $0.represented.name == name }) { AsyncOperation.cancelAll($0, in: $1) }
  }

  /// Cancels the operations that wait, at any depth. Executing operations continue.
  ///
  /// An operation waits if it has not started, or if it is a ``RetryOperation`` or a ``RepeatOperation`` that backs off,
  /// whose failed attempts are then no failures of its group. Inside an executing operation, such as a nested group, what
  /// waits is cancelled as well. A cancelled operation leaves a queue when the queue has a slot for it.
  ///
  /// In a group that stays open, this shuts a server down gracefully: see <doc:ThreadingAndCancellation>.
  ///
  /// - Returns: The number of operations that this call cancelled, without those inside cancelled ones.
  @discardableResult
  public func cancelWaitingOperations() -> Int {
    let operations = place.slots.operations.filter { $0 is AsyncOperation || !$0.isExecuting }
    return cancel(operations) { AsyncOperation.cancelWaiting($0, in: $1) }
  }

  private func cancel(_ operations: [Operation], _ cancelOwn: ([AsyncOperation], GroupEngine?) -> Int) -> Int {
    // Only a queue has plain ones.
    let plain = operations.filter { !($0 is AsyncOperation) && !$0.isCancelled && !$0.isFinished }
    for operation in plain { operation.cancel() }
    let own = operations.compactMap { $0 as? AsyncOperation }
    // The drains of a scheduler ignore it.
    return cancelOwn(own, place.group?.engine) + plain.count { $0.isCancelled }
  }
}
