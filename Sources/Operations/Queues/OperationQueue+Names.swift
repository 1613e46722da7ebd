public import Foundation

extension OperationQueue {
  /// The operations of that name that are in the queue: those that wait or execute. In the order they were added.
  public func operations(named name: String) -> [Operation] { operations.filter { $0.name == name } }

  /// Cancels the operations of that name that are in the queue.
  ///
  /// - Returns: How many were cancelled by this call: those that were cancelled before do not count.
  @discardableResult
  public func cancelOperations(named name: String) -> Int { operations(named: name).cancelUnfinished() }
}

extension GroupOperation {
  /// The unfinished members of that name, in the order they were added.
  public final func operations(named name: String) -> [Operation] { operations.filter { $0.name == name } }

  /// Cancels the members of that name.
  ///
  /// - Returns: How many were cancelled by this call: those that were cancelled before do not count.
  @discardableResult
  public final func cancelOperations(named name: String) -> Int { operations(named: name).cancelUnfinished() }
}

extension [Operation] {
  /// Cancels those that can be, and returns how many.
  func cancelUnfinished() -> Int {
    let operations = filter { !$0.isCancelled && !$0.isFinished }
    for operation in operations { operation.cancel() }
    return operations.count
  }
}
