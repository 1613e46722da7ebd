import Foundation
import Operations

/// What came of the operations.
extension SoakChecks {
  mutating func checkOutcome(of item: SoakItem) {
    guard let own = own(item.index) else { return }
    if started[item.index] != nil {
      expect(missingInputs(of: item).isEmpty, item, "executed without its inputs")
    }
    for error in own.errors {
      expect(isExpected(error, of: item), item, "has an error that it cannot have")
    }
    let isUndisturbed = !own.isCancelled && !isFinishedFromOutside(item)
    if isUndisturbed, ran[item.index] != nil, item.isFailing, item.hasValue {
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
      expect(counts[.attempted(item.index, attempt: failures + 1)] == 1, item, "tried too rarely")
      expect(counts[.attempted(item.index, attempt: failures + 2)] == nil, item, "tried again after its success")
      let errors = (own as? RetryOperation<Int>)?.attemptErrors.count ?? 0
      expect(errors == failures, item, "has \(errors) errors of attempts")
    }
  }

  private func isExpected(_ error: any Error, of item: SoakItem) -> Bool {
    switch error {
    case let error as SoakError: error.item == item.index && (item.isFailing || isCutShort(item))
    case OperationError.Code.timedOut: item.timeout != nil
    case OperationError.Code.conditionFailed: item.condition != nil
    // What hands it its input may have been cancelled, with the group, a moment earlier.
    case OperationError.Code.inputUnavailable:
      !missingInputs(of: item).isEmpty || world.parts[item.index].dropLast().contains(where: \.isCancelled)
    case OperationError.Code.excluded: item.policy == 2
    case OperationError.Code.waitCycle: item.outer != nil && !item.keys.isEmpty
    default: false
    }
  }

  /// Whether it may have been cancelled in an attempt that failed, after which there was no other.
  private func isCutShort(_ item: SoakItem) -> Bool {
    guard case .retry(let failures) = item.kind else { return false }
    return failures > 0 && world.operations[item.index].isCancelled
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
    path.filter { $0 != "ResultOperation<Int>" }.joined(separator: " › ") + ": \(error)"
  }

  mutating func checkGroup(_ item: SoakItem) {
    guard let group = world.group(item.index) else { return }
    // One that timed out does not wait for its members.
    let isAbandoned = item.timeout != nil && (has(.timedOut, item) || group.isCancelled)
    let members = plan.members(of: item.index).filter(isPresent)
    let late = Set(members.filter { $0.coming != .atFirst }.map { "\($0.index)" })
    var expected: [String: Int] = [:]
    for member in members where member.coming == .atFirst {
      for case let part as AsyncOperation in world.parts[member.index] {
        let failures =
          (part as? GroupOperation)?.failures.map { ($0.path, $0.error) }
          ?? part.errors.map { ([part.name ?? ""], $0) }
        for (path, error) in failures {
          expected[Self.text(of: ["\(item.index)"] + path, error), default: 0] += 1
        }
      }
    }
    var found: [String: Int] = [:]
    for failure in group.failures where failure.path.count > 1 && !late.contains(failure.path[1]) {
      found[Self.text(of: failure.path, failure.error), default: 0] += 1
    }
    for (failure, count) in found {
      expect(count <= expected[failure, default: 0], item, "has a failure that nobody had: \(failure)")
    }
    if !isAbandoned {
      for (failure, count) in expected {
        expect(count <= found[failure, default: 0], item, "has lost a failure: \(failure)")
      }
    }
    guard group is SoakGroup, !isAbandoned else { return }
    for member in members where member.coming == .atFirst {
      expect(counts[.accounted(member.index)] == 1, item, "was not told of the end of \(member.index)")
    }
  }
}
