import Foundation
import Operations

/// Why an operation may have been cancelled, or not been executed.
extension SoakChecks {
  /// Whether it has such an error; a group, one of its own.
  func has(_ code: OperationError.Code, _ item: SoakItem) -> Bool {
    if let group = world.operations[item.index] as? GroupOperation {
      return group.failures.contains { $0.path.count == 1 && code ~= $0.error }
    }
    return own(item.index)?.errors.contains { code ~= $0 } ?? false
  }

  /// Whether somebody has done this to it from outside.
  func isDone(_ isMeant: (SoakAction.Deed) -> Bool) -> Bool { plan.actions.contains { isMeant($0.deed) } }

  func isFinishedFromOutside(_ item: SoakItem) -> Bool {
    isDone { deed in if case .finish(item.index) = deed { true } else { false } }
  }

  /// Those whose values it cannot do without, that have none.
  func missingInputs(of item: SoakItem) -> [Int] {
    if item.isInputOptional { return [] }
    return item.inputs.filter { input in
      if case .success? = world.output(input).result { false } else { true }
    }
  }

  func isCancelledForReason(_ item: SoakItem) -> Bool {
    let isCancelledFromOutside = isDone { deed in
      if case .cancel(item.index, _) = deed { true } else { false }
    }
    if isCancelledFromOutside { return true }
    // A finish that came before the cancellation decided, so the reason of the cancellation was not recorded.
    if isFinishedFromOutside(item), missingInputs(of: item).count > 0 || !item.keys.isEmpty { return true }
    if case .awaited(.some) = item.coming { return true }
    if item.coming == .whenGroupIsCancelled { return true }
    for outer in plan.outer(of: item.index).compactMap(world.group) {
      if outer.isCancelled || (outer.errorPolicy == .cancelOnFailure && !outer.failures.isEmpty) { return true }
    }
    if has(.timedOut, item), item.timeout != nil { return true }
    if has(.inputUnavailable, item), !missingInputs(of: item).isEmpty { return true }
    if item.isGroup {
      return plan.members(of: item.index).contains { $0.way == .cancellingGroup && ran[$0.index] != nil }
        || isTurnedAway(item)
    }
    return isTurnedAway(item)
  }

  /// Because of its keys.
  private func isTurnedAway(_ item: SoakItem) -> Bool {
    if item.keys.isEmpty { return false }
    if has(.excluded, item) { return item.policy == 2 }
    if has(.waitCycle, item) { return item.outer != nil }
    return plan.items.contains { other in
      other.policy == 1 && other.domain == item.domain && other.index != item.index
        && other.keys.contains(where: item.keys.contains)
    }
  }

  func isUnexecutedForReason(_ item: SoakItem) -> Bool {
    guard let own = own(item.index) else { return false }
    if own.isCancelled { return isCancelledForReason(item) }
    return (has(.conditionFailed, item) && isUnmet(item)) || isFinishedFromOutside(item)
  }

  private func isUnmet(_ item: SoakItem) -> Bool {
    let dependencies = (item.dependencies + item.inputs).map { world.operations[$0] }
    switch item.condition {
    case .unmet, .unmetLater: return true
    // It may be about a part of it, in between.
    case .noFailed:
      return item.inputs.count > 0 || dependencies.contains { ($0 as? AsyncOperation)?.errors.isEmpty == false }
    case .noCancelled: return item.inputs.count > 0 || dependencies.contains { $0.isCancelled }
    case .met, .metLater, nil: return false
    }
  }
}
