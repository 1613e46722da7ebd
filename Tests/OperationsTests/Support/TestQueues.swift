import Foundation
import OperationsTestSupport

@testable import Operations

extension OperationQueue {
  static func limited(to count: Int) -> OperationQueue {
    let queue = OperationQueue()
    queue.maxConcurrentOperationCount = count
    return queue
  }

  static func suspended() -> OperationQueue {
    let queue = OperationQueue()
    queue.isSuspended = true
    return queue
  }

  static func named(_ name: String, limit: Int = defaultMaxConcurrentOperationCount) -> OperationQueue {
    let queue = limited(to: limit)
    queue.name = name
    return queue
  }

  /// Returns an operation that executes in the queue until its gate is opened.
  func holding(_ name: String = "held") async -> HeldOperation {
    await begin(HeldOperation().named(name))
  }

  func addByFoundation(_ operation: Operation) { addOperation(operation) }

  /// Opens gates, resumes the queue, and waits until it is empty.
  func drained(opening gates: [Gate] = []) async {
    for gate in gates { gate.open() }
    isSuspended = false
    await finished()
  }

  func run(settling operations: [Operation]) async {
    addOperations(operations)
    for operation in operations { await operation.finished() }
  }

  /// Adds an operation, and returns it when a gate is open, such as that of an operation that executes.
  @discardableResult
  func add<O: AsyncOperation>(_ operation: O, until gate: Gate) async -> O {
    addOperation(operation)
    await gate.opened()
    return operation
  }

  @discardableResult
  func begin(_ held: HeldOperation) async -> HeldOperation { await add(held, until: held.begun) }

  /// Adds a group, and returns when it has started its members, which is after its observers have been notified.
  func begin(_ group: GroupOperation) async {
    addOperation(group)
    await poll { !group.engine.state.withLock { $0.schedule.life.isGathering } }
  }
}

extension GroupOperation {
  /// Resumes the group, closes it if it is open, and waits for its end.
  func ended() async {
    if isSuspended { isSuspended = false }
    if staysOpen { staysOpen = false }
    await finished()
  }
}
