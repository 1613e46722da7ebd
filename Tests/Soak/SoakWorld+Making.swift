import Foundation
import Operations
import OperationsTestSupport

extension SoakWorld {
  /// What makes up an item, itself at the end.
  func make(_ item: SoakItem) -> [Operation] {
    let work = work(of: item)
    switch item.kind {
    case .work:
      let operation = SoakOperation(item, self)
      let policy: InputPolicy = item.isInputOptional ? .optional : .required
      for input in item.inputs { output(input).pass(to: operation, input: policy) { $0.receive($1) } }
      return [operation]
    case .task:
      return [
        TaskOperation { [clock] in
          try? await clock.sleep(for: .milliseconds(1))
          return try work([])
        }
      ]
    case .map: return [output(item.inputs[0]).map { try work([$0]) }]
    case .asynchronousMap:
      return [
        output(item.inputs[0]).map { value in
          await Task.yield()
          return try work([value])
        }
      ]
    case .zip:
      let both = Operations.zip(output(item.inputs[0]), output(item.inputs[1]))
      return [both, both.map { try work([$0.0, $0.1]) }]
    case .collect:
      let all = collect(item.inputs.map(output), input: item.isInputOptional ? .optional : .required)
      return [all, all.map { try work($0) }]
    case .flatMap:
      // Two lead to one operation, if it may run in either of them.
      if item.keys.isEmpty, item.index.isMultiple(of: 2) { return flatMaps(of: item) }
      return [output(item.inputs[0]).flatMap { value in ResultOperation { try work([value]) } }]
    case .adapted:
      let operation = SoakOperation(item, self)
      let adapter = AdapterOperation(from: output(item.inputs[0]), to: operation) { source, target in
        if case .success(let value)? = source.result { target.receive(value) }
      }
      return [adapter, operation]
    case .delay: return [DelayOperation(.milliseconds(item.index % 10))]
    case .plain:
      let block = BlockOperation()
      block.addExecutionBlock { [unowned block, log, watch] in
        watch.enter(item.index, block)
        log.write(.ran(item.index))
        for dependency in block.dependencies where !dependency.isFinished {
          log.report("\(item.index), a plain one, began before \(dependency.name ?? "") had finished")
        }
        watch.leave(item.index)
      }
      return [block]
    case .retry(let failures):
      return [
        RetryOperation(attempts: 3, backoff: .constant(.milliseconds(2))) { [log, clock] attempt in
          let result = ResultOperation {
            log.write(.attempted(item.index, attempt: attempt))
            if attempt <= failures { throw SoakError(item: item.index) }
            return try work([])
          }
          return item.index.isMultiple(of: 2) ? result : SoakWorld.outlivedGroup(clock) ==> result
        }
      ]
    case .group:
      let group = GroupOperation()
      if item.limit > 0 { group.maxConcurrentOperationCount = item.limit }
      if item.cancelsOnFailure { group.errorPolicy = .cancelOnFailure }
      group.isSuspended = item.isSuspended
      group.staysOpen = item.staysOpen
      return [group]
    }
  }

  /// A group whose group times out before its work has ended, for which the next attempt of a retry waits.
  private static func outlivedGroup(_ clock: ManualClock) -> GroupOperation {
    let group = GroupOperation([
      TaskOperation { _ = await Task.detached { try? await clock.sleep(for: .milliseconds(3)) }.value }
    ])
    group.timeout = .milliseconds(1)
    return GroupOperation([group])
  }

  /// Two that race for one operation: the second follows it.
  private func flatMaps(of item: SoakItem) -> [Operation] {
    let token = LiveCount.Token(live)
    let shared = Locked<ResultOperation<Int>?>(nil)
    return (0..<2).map { _ in
      output(item.inputs[0]).flatMap { value -> ResultOperation<Int> in
        let new = ResultOperation<Int> { try withExtendedLifetime(token) { try item.outcome(of: [value]) } }
        return shared.withLock { shared in
          let operation = shared ?? new
          shared = operation
          return operation
        }
      }
    }
  }

  /// The work of an item that is a closure.
  private func work(of item: SoakItem) -> @Sendable ([Int]) throws -> Int {
    let token = LiveCount.Token(live)
    return { [weak self, log] inputs in
      log.write(.ran(item.index))
      guard let self else { throw CancellationError() }
      watch.enter(item.index, operations[item.index])
      bringNewcomers(.broughtBy(item.index))
      watch.leave(item.index)
      return try withExtendedLifetime(token) { try item.outcome(of: inputs) }
    }
  }

  func make(_ condition: SoakItem.Condition, of item: SoakItem) -> OperationCondition {
    if condition == .noFailed { return .noFailedDependencies }
    if condition == .noCancelled { return .noCancelledDependencies }
    return OperationCondition(name: "\(condition)") { [clock, token = LiveCount.Token(live)] _ in
      if condition == .metLater || condition == .unmetLater { try await clock.sleep(for: .milliseconds(3)) }
      try withExtendedLifetime(token) { if item.isUnmet { throw SoakError(item: item.index) } }
    }
  }
}
