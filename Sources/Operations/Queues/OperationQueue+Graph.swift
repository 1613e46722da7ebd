public import Foundation

extension OperationQueue {
  /// Adds an operation and all operations of the toolkit that it waits for, directly or not, to this queue.
  ///
  /// Those that are in a queue or a group already, or have been started, stay where they are. So do plain Foundation
  /// operations, of which nobody can tell: add them yourself. What the members of a group wait for comes along, too.
  public func addGraph(endingIn last: AsyncOperation) {
    let enqueued = Set(operations.map { ObjectIdentifier($0) })
    addOperations(OperationWalk.freeGraph(endingIn: last).filter { !enqueued.contains(ObjectIdentifier($0)) })
  }
}
