import Foundation
import Operations

/// What is done to the operations from outside.
extension SoakWorld {
  func carryOut(_ deed: SoakAction.Deed) {
    switch deed {
    case .cancel(let index, let threads):
      let operation = operations[index]
      if threads == 1 {
        // A thread that is starting the group cancels the members as well, and may not have reached all of them.
        let members = plan.items[index].isGroup ? plan.members(of: index).map { operations[$0.index] } : []
        let hasStarted = operation.isExecuting && members.contains { $0.isExecuting || $0.isFinished }
        operation.cancel()
        if hasStarted { checkMembers(ofCancelled: index) }
      } else {
        DispatchQueue.concurrentPerform(iterations: threads) { _ in operation.cancel() }
      }
    case .finish(let index):
      watch.leave(index)
      output(index).finish(returning: -1)
    case .resume(let index): group(index)?.isSuspended = false
    case .close(let index): group(index)?.staysOpen = false
    case .limit(let index, let limit): group(index)?.maxConcurrentOperationCount = limit
    case .takeGhostBack(let index): takeGhostBack(index)
    case .rename(let index): operations[index].name = "\(index)"
    case .lookAtEverything:
      for queue in queues { _ = queue.stallReport() }
      for case let group as GroupOperation in operations { _ = (group.stallReport(), group.failures) }
      _ = domains.flatMap { domain in SoakPlan.keys.map { domain.waiting(for: ExclusivityKey($0)) } }
    }
  }

  /// From an observer, however deep inside: groups are cancelled when `cancel()` returns, and have one progress.
  func cancelNested(in index: Int) {
    var groups = [GroupOperation([AsyncOperation()])]
    for _ in 0..<(index % 20) { groups.append(GroupOperation([groups[groups.count - 1]])) }
    let outermost = groups[groups.count - 1]
    if outermost.progress !== outermost.progress { log.report("\(index) saw a group with two progresses") }
    outermost.cancel()
    if !groups.allSatisfy(\.isCancelled) { log.report("\(index) cancelled nested groups, and one was not") }
  }

  /// Checks that the members are cancelled, unless another thread may be cancelling them.
  private func checkMembers(ofCancelled index: Int) {
    let item = plan.items[index]
    let cancellations = plan.actions.count { if case .cancel(index, _) = $0.deed { true } else { false } }
    guard item.isGroup, cancellations == 1, item.timeout == nil, item.keys.isEmpty, !item.cancelsOnFailure,
      item.coming == .atFirst,
      plan.outer(of: index).isEmpty,
      !plan.members(of: index).contains(where: { $0.way == .cancellingGroup })
    else { return }
    for member in plan.members(of: index) where member.coming == .atFirst {
      let operation = operations[member.index]
      if !operation.isCancelled, !operation.isFinished {
        log.report("\(index) was cancelled, and its member \(member.index) was not")
      }
    }
  }
}
