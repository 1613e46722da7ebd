import Foundation
import Operations
import OperationsTestSupport

/// What a plan describes, made of operations, queues and schedulers. It does not change any more once it is made.
final class SoakWorld: @unchecked Sendable {
  let plan: SoakPlan
  let live: LiveCount
  let log = SoakLog()
  let watch: SoakWatch
  let clock = ManualClock()
  let queues: [OperationQueue]
  let domains = (0..<SoakPlan.domains).map { _ in ExclusivityDomain() }
  /// Ends operations: nothing else is done on it.
  let ends = SerialScheduler(name: "ends")
  let events: SoakEvents
  /// By index.
  private(set) var operations: [Operation] = []
  /// What makes up an item, itself at the end.
  private(set) var parts: [[Operation]] = []
  private var ghosts: [Int: Operation] = [:]

  init(_ plan: SoakPlan, _ live: LiveCount) {
    self.plan = plan
    self.live = live
    watch = SoakWatch(plan, log)
    queues = plan.queueLimits.enumerated().map { index, limit in
      let queue = OperationQueue()
      queue.name = "queue \(index)"
      if limit > 0 { queue.maxConcurrentOperationCount = limit }
      return queue
    }
    events = SoakEvents(plan, clock, live)
    for item in plan.items {
      let parts = make(item)
      guard let operation = parts.last else { preconditionFailure("An item is an operation at least.") }
      self.parts.append(parts)
      operations.append(operation)
      prepare(item, parts)
    }
    for item in plan.items where item.isGroup { fill(item) }
  }

  func group(_ index: Int) -> GroupOperation? { operations[index] as? GroupOperation }

  func output(_ index: Int) -> ResultOperation<Int> {
    guard let operation = operations[index] as? ResultOperation<Int> else {
      preconditionFailure("\(index) has no value.")
    }
    return operation
  }

  private func prepare(_ item: SoakItem, _ parts: [Operation]) {
    let index = item.index
    for case let own as AsyncOperation in parts where item.outer == nil { own.clock = clock }
    let operation = operations[index].named("\(index)")
    for part in parts.dropLast() { part.named("part of \(index)") }
    for dependency in item.dependencies { operations[dependency] ==> operation }
    guard let own = operation as? AsyncOperation else { return }
    let token = LiveCount.Token(live)
    let isGroup = item.isGroup
    own.addObserver(
      OperationObserver(
        didStart: { [log, watch, weak self] operation in
          log.write(.started(index))
          if let self, let group = item.outer.flatMap(group) { watch.start(index, operation, in: group) }
          for dependency in operation.dependencies where !dependency.isFinished {
            log.report("\(index) began before \(dependency.name ?? "") had finished")
          }
          if isGroup { watch.enter(index, operation) }
        },
        didCancel: { [log, weak self] _ in
          log.write(.cancelled(index))
          if isGroup {
            self?.bringNewcomers(whenCancelled: index)
            self?.cancelNested(in: index)
          }
        },
        didFinish: { [log, watch, weak self] operation in
          if !operation.isFinished { log.report("\(index) was said to have finished before it had") }
          if isGroup {
            watch.leave(index)
            self?.cancelNested(in: index)
          }
          log.write(.finished(index))
          withExtendedLifetime(token) {}
        }
      )
    )
    own.exclusive(item.keys.map { ExclusivityKey($0) }, policy: policy(of: item), in: domains[item.domain])
    if let condition = item.condition { own.addCondition(make(condition, of: index)) }
    if let timeout = item.timeout { own.timeout = .milliseconds(timeout) }
    if item.waitsForGhost {
      let ghost = AsyncBlockOperation { $0.finish() }.named("ghost")
      ghost ==> own
      ghosts[index] = ghost
    }
    // Released at once: nobody has enqueued it.
    if item.leadsToGhost { own ==> AsyncBlockOperation { $0.finish() } }
  }

  private func fill(_ item: SoakItem) {
    guard let group = group(item.index) else { return }
    for member in plan.members(of: item.index) {
      switch member.coming {
      case .broughtBy, .whenGroupIsCancelled: continue
      case .atFirst, .awaited: break
      }
      group.addOperations(parts[member.index])
    }
  }

  func policy(of item: SoakItem) -> ExclusivityPolicy { [.wait, .replace, .drop][item.policy] }

  func takeGhostBack(_ index: Int) {
    if let ghost = ghosts[index] { operations[index].removeDependency(ghost) }
  }

  // MARK: Newcomers

  func bringNewcomers(of index: Int) { bring { $0.coming == .broughtBy(index) } }

  func bringNewcomers(whenCancelled group: Int) {
    bring { $0.coming == .whenGroupIsCancelled && $0.outer == group }
  }

  private func bring(_ isMeant: (SoakItem) -> Bool) {
    for item in plan.items where isMeant(item) {
      guard let group = item.outer.flatMap(group) else { continue }
      group.addOperation(operations[item.index])
      log.write(.added(item.index))
    }
  }
}
