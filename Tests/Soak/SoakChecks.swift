import Foundation
import Operations

struct SoakChecks {
  let world: SoakWorld
  var violations: [String] = []
  private var positions: [SoakLog.Entry: [Int]] = [:]
  var plan: SoakPlan { world.plan }

  init(_ world: SoakWorld) {
    self.world = world
    violations = world.log.violations
    for (position, entry) in world.log.entries.enumerated() { positions[entry, default: []].append(position) }
    for (entry, found) in positions where found.count > 1 { violations.append("\(found.count) times: \(entry)") }
    for item in plan.items where isPresent(item) {
      checkEnd(of: item)
      checkOrder(of: item)
      if item.isGroup { checkGroup(item) } else if !item.isPlain { checkOutcome(of: item) }
    }
    checkPlaces()
  }

  func did(_ entry: SoakLog.Entry) -> Bool { positions[entry] != nil }

  func isPresent(_ item: SoakItem) -> Bool { !item.isNewcomer || did(.added(item.index)) }

  func own(_ index: Int) -> AsyncOperation? { world.operations[index] as? AsyncOperation }

  mutating func expect(_ isTrue: Bool, _ item: SoakItem, _ words: @autoclosure () -> String) {
    if isTrue { return }
    let operation = world.operations[item.index]
    let errors = (operation as? AsyncOperation)?.errors ?? []
    violations.append("\(item.index) \(words()); errors \(errors), cancelled \(operation.isCancelled): \(item)")
  }

  private mutating func checkEnd(of item: SoakItem) {
    let index = item.index
    for part in world.parts[index] { expect(part.isFinished, item, "has not finished") }
    guard let own = own(index) else {
      return expect(did(.ran(index)) || isCancelledForReason(item), item, "finished unexecuted, without a reason")
    }
    expect(did(.finished(index)), item, "did not report that it had finished")
    expect(own.state == .finished, item, "is \(own.state)")
    expect(!did(.ran(index)) || did(.started(index)), item, "did its work without having been started")
    expect(did(.cancelled(index)) == own.isCancelled, item, "was notified of no cancellation, or a wrong one")
    expect(!own.isCancelled || isCancelledForReason(item), item, "was cancelled without a reason")
    if did(.started(index)) {
      expect(!item.isUnmet, item, "executed in spite of its condition")
    } else {
      expect(isUnexecutedForReason(item), item, "finished unexecuted, without a reason")
    }
  }

  private mutating func checkOrder(of item: SoakItem) {
    guard let start = positions[.started(item.index)]?.last else { return }
    for other in item.dependencies + item.inputs where !plan.items[other].isPlain {
      let isInOrder = positions[.finished(other)]?.last.map { $0 < start } ?? false
      expect(isInOrder, item, "began before the end of \(other), for which it waits")
    }
  }

  private mutating func checkPlaces() {
    for report in world.queues.map({ $0.stallReport() }) where !report.entries.isEmpty {
      violations.append("\(report)")
    }
    for domain in world.domains {
      for key in SoakPlan.keys.map({ ExclusivityKey($0) }) {
        let (holders, waiting) = (domain.holders(of: key), domain.waiting(for: key))
        if holders.isEmpty, waiting.isEmpty { continue }
        violations.append("\(holders) still hold \(key), and \(waiting) still wait for it")
      }
    }
  }

  // MARK: Outcomes

  mutating func checkOutcome(of item: SoakItem) {
    guard let own = own(item.index) else { return }
    expect(!did(.started(item.index)) || missingInputs(of: item).isEmpty, item, "executed without its inputs")
    for error in own.errors { expect(isExpected(error, of: item), item, "has an error that it cannot have") }
    let isUndisturbed = !own.isCancelled && !isFinishedFromOutside(item)
    if isUndisturbed, did(.ran(item.index)), item.isFailing, item.hasValue {
      expect(own.errors.contains { $0 as? SoakError == SoakError(item: item.index) }, item, "has lost its error")
    }
    guard item.hasValue else { return }
    let result = world.output(item.index).result
    switch result {
    case .success(let value):
      // A finish before the start decides, even if a cancellation follows.
      let mayHaveValue = !own.isCancelled || isFinishedFromOutside(item)
      expect(own.errors.isEmpty && mayHaveValue, item, "has a value although it failed")
      checkValue(value, of: item)
    case .failure: expect(!own.errors.isEmpty || own.isCancelled, item, "has no value although it succeeded")
    case nil: expect(false, item, "has no result")
    }
    if case .retry(let failures) = item.kind, case .success? = result, isUndisturbed {
      expect(did(.attempted(item.index, attempt: failures + 1)), item, "tried too rarely")
      expect(!did(.attempted(item.index, attempt: failures + 2)), item, "tried again after its success")
      let errors = (own as? RetryOperation<Int>)?.failedAttempts ?? 0
      expect(errors == failures, item, "has \(errors) errors of attempts")
    }
  }

  private func isExpected(_ error: any Error, of item: SoakItem) -> Bool {
    switch error {
    case let error as SoakError: error.item == item.index && (item.isFailing || isCutShort(item))
    case OperationError.Code.timedOut: item.timeout != nil
    case OperationError.Code.conditionFailed: item.condition != nil
    // The operation that passes the input may have been cancelled, with the group, a moment earlier.
    case OperationError.Code.inputUnavailable:
      !missingInputs(of: item).isEmpty || world.parts[item.index].dropLast().contains(where: \.isCancelled)
    case OperationError.Code.excluded: item.policy == .drop
    case OperationError.Code.replaced: mayBeReplaced(item)
    case OperationError.Code.waitCycle: item.outer != nil && !item.keys.isEmpty
    default: false
    }
  }

  /// Whether it may have been cancelled in an attempt that failed, after which there was no other.
  private func isCutShort(_ item: SoakItem) -> Bool {
    if case .retry(1...) = item.kind { world.operations[item.index].isCancelled } else { false }
  }

  private mutating func checkValue(_ value: Int, of item: SoakItem) {
    if isFinishedFromOutside(item), value == -1 { return }
    expect(!item.isFailing, item, "has succeeded, and was to fail")
    let inputs = item.inputs.compactMap { try? world.output($0).result?.get() }
    guard let operation = own(item.index) as? SoakOperation else {
      return expect(value == item.value(of: inputs), item, "has the wrong value \(value), of \(inputs)")
    }
    expect(!operation.refusedValues.contains(value), item, "has a value that was refused, \(value)")
    expect(0...1 ~= value &- item.value(of: inputs), item, "has the wrong value \(value), of \(inputs)")
  }

  // MARK: Groups

  /// The text of a failure, without the operation inside a flatMap or a retry, which has no name here.
  private static func text(of path: [String], _ error: any Error) -> String {
    path.filter { !$0.contains(".swift, line ") }.joined(separator: " › ") + ": \(error)"
  }

  mutating func checkGroup(_ item: SoakItem) {
    guard let group = world.group(item.index) else { return }
    // A group that timed out does not wait for its members.
    let isAbandoned = item.timeout != nil && (has(.timedOut, item) || group.isCancelled)
    let members = plan.members(of: item.index).filter(isPresent)
    let (first, late) = (members.filter { $0.coming == .atFirst }, members.filter { $0.coming != .atFirst })
    // How many more of a failure the group has than its members.
    var surplus: [String: Int] = [:]
    for case let part as AsyncOperation in first.flatMap({ world.parts[$0.index] }) {
      let failures =
        (part as? GroupOperation)?.failures.map { ($0.path, $0.error) } ?? part.errors.map { ([part.name ?? ""], $0) }
      // What a policy cancels is no failure of the group.
      let isOfPolicy = { (path: [String], error: any Error) in
        part.isCancelled && path.count == 1
          && (OperationError.Code.excluded ~= error || OperationError.Code.replaced ~= error)
      }
      for (path, error) in failures where !isOfPolicy(path, error) {
        surplus[Self.text(of: ["\(item.index)"] + path, error), default: 0] -= 1
      }
    }
    let lateNames = late.map { "\($0.index)" }
    for failure in group.failures where failure.path.count > 1 && !lateNames.contains(failure.path[1]) {
      surplus[Self.text(of: failure.path, failure.error), default: 0] += 1
    }
    for (failure, count) in surplus {
      expect(count <= 0, item, "has a failure that no member had: \(failure)")
      expect(count >= 0 || isAbandoned, item, "has lost a failure: \(failure)")
    }
  }

  // MARK: Reasons of cancellations, and of operations that did not execute

  func has(_ code: OperationError.Code, _ item: SoakItem) -> Bool {
    if let group = world.operations[item.index] as? GroupOperation {
      return group.failures.contains { $0.path.count == 1 && code ~= $0.error }
    }
    return own(item.index)?.errors.contains { code ~= $0 } ?? false
  }

  func isFinishedFromOutside(_ item: SoakItem) -> Bool {
    plan.actions.contains { if case .finish(item.index) = $0.deed { true } else { false } }
  }

  func missingInputs(of item: SoakItem) -> [Int] {
    item.isInputOptional ? [] : item.inputs.filter { (try? world.output($0).result?.get()) == nil }
  }

  func isCancelledForReason(_ item: SoakItem) -> Bool {
    let isCancelledByPlan = plan.actions.contains { if case .cancel(item.index, _) = $0.deed { true } else { false } }
    if isCancelledByPlan { return true }
    // A finish that came before the cancellation decided, so the reason of the cancellation was not recorded.
    if isFinishedFromOutside(item), missingInputs(of: item).count > 0 || !item.keys.isEmpty { return true }
    if case .awaited(.some) = item.coming { return true }
    if item.coming == .whenGroupIsCancelled { return true }
    for outer in plan.outer(of: item.index).compactMap(world.group) {
      if outer.isCancelled || (outer.errorPolicy == .cancelOnFailure && !outer.failures.isEmpty) { return true }
    }
    if has(.timedOut, item), item.timeout != nil { return true }
    if has(.inputUnavailable, item), !missingInputs(of: item).isEmpty { return true }
    let members = item.isGroup ? plan.members(of: item.index) : []
    if members.contains(where: { $0.way == .cancellingGroup && did(.ran($0.index)) }) { return true }
    return isTurnedAway(item)
  }

  /// Because of its keys.
  private func isTurnedAway(_ item: SoakItem) -> Bool {
    if item.keys.isEmpty { return false }
    if has(.excluded, item) { return item.policy == .drop }
    if has(.waitCycle, item) { return item.outer != nil }
    return mayBeReplaced(item)
  }

  private func mayBeReplaced(_ item: SoakItem) -> Bool {
    plan.items.contains { $0.policy == .replace && $0.sharesKey(with: item) }
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
    // The condition may be about a part of the item, in between.
    case .noFailed:
      return item.inputs.count > 0 || dependencies.contains { ($0 as? AsyncOperation)?.errors.isEmpty == false }
    case .noCancelled: return item.inputs.count > 0 || dependencies.contains { $0.isCancelled }
    case .met, .metLater, nil: return false
    }
  }
}
