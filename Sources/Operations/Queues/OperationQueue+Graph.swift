public import Foundation

extension OperationQueue {
  /// Adds an operation and all operations of the toolkit that it waits for, directly or not, to this queue.
  ///
  /// Those that are in a queue or a group already, or have been started, stay where they are; several graphs may share
  /// some. Plain Foundation operations stay out, for nobody can tell where they are: add them yourself. Nor can it be
  /// told of ours if they were added to another queue by Foundation's own verbs: use these. What the members of a group
  /// wait for comes along, too.
  public func addGraph(endingIn last: AsyncOperation) {
    let enqueued = Set(operations.map { ObjectIdentifier($0) })
    let graph = OperationWalk.freeGraph(endingIn: last).filter { !enqueued.contains(ObjectIdentifier($0)) }
    // Somebody else may have taken some of them a moment ago: a login that two graphs wait for.
    addClaimed(graph.filter { $0.claimIfFree(for: self) })
  }
}
