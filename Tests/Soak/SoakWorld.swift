import Foundation
import Operations
import OperationsTestSupport

/// The operations, queues and schedulers that a plan describes. It does not change once it is made.
final class SoakWorld: @unchecked Sendable {
  let plan: SoakPlan
  let live: LiveCount
  let log = SoakLog()
  let screen: SoakScreen
  let watch: SoakWatch
  let clock = ManualClock()
  let queues: [OperationQueue]
  let domains = (0..<SoakPlan.domains).map { _ in ExclusivityDomain() }
  /// Ends operations: nothing else is done on it.
  let ends = SerialScheduler(name: "ends")
  let homes: [SoakHome]
  let tenants: [SoakHome.Tenant]
  private(set) var producers: [SoakProducer] = []
  /// Events for a later time that have neither been run nor dropped.
  let delayed = LiveCount()
  /// The deeds that have not been carried out.
  let pending = LiveCount()
  let tasks = Locked<[Task<Void, Never>]>([])
  /// By index.
  private(set) var operations: [Operation] = []
  /// What makes up an item, itself at the end.
  private(set) var parts: [[Operation]] = []
  private var ghosts: [Int: Operation] = [:]

  init(_ plan: SoakPlan, _ live: LiveCount) {
    self.plan = plan
    self.live = live
    screen = SoakScreen(log)
    watch = SoakWatch(plan, log)
    queues = plan.queueLimits.enumerated().map { index, limit in
      let queue = OperationQueue()
      queue.name = "queue \(index)"
      if limit > 0 { queue.maxConcurrentOperationCount = limit }
      return queue
    }
    homes = plan.homes.enumerated().map { [clock, log] in SoakHome($0, $1, clock, log, live) }
    tenants = homes.map { SoakHome.Tenant($0) }
    producers = plan.producers.enumerated().map { SoakProducer($0 + 1, $1, self) }
    for item in plan.items {
      let parts = make(item)
      self.parts.append(parts)
      operations.append(parts[parts.count - 1])
      prepare(item, parts)
    }
    for item in plan.items where !item.isNewcomer { item.outer.flatMap(group)?.addOperations(parts[item.index]) }
  }

  func group(_ index: Int) -> GroupOperation? { operations[index] as? GroupOperation }

  func output(_ index: Int) -> ResultOperation<Int> {
    guard let operation = operations[index] as? ResultOperation<Int> else { fatalError("\(index) has no value.") }
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
          if isGroup { self?.bringNewcomers(.whenGroupIsCancelled, to: index) }
        },
        didFinish: { [log, watch] operation in
          if !operation.isFinished { log.report("\(index) was said to have finished before it had") }
          if isGroup { watch.leave(index) }
          log.write(.finished(index))
          withExtendedLifetime(token) {}
        }
      )
    )
    let (keys, domain) = (item.keys.map { ExclusivityKey($0) }, domains[item.domain])
    if item.claim.limit == 1 {
      own.exclusive(keys, policy: item.policy, in: domain)
    } else {
      for key in keys { own.limited(key, to: item.claim.limit, weight: item.claim.weight, in: domain) }
    }
    if let condition = item.condition { own.addCondition(make(condition, of: item)) }
    if let timeout = item.timeout { own.timeout = .milliseconds(timeout) }
    if item.waitsForGhost {
      let ghost = AsyncBlockOperation { $0.finish() }.named("ghost")
      ghost ==> own
      ghosts[index] = ghost
    }
    // Released at once, because it is not enqueued.
    if item.leadsToGhost { own ==> AsyncBlockOperation { $0.finish() } }
  }

  /// Adds newcomers to their groups: all that come in this way, or the ones of one group.
  func bringNewcomers(_ coming: SoakItem.Coming, to outer: Int? = nil) {
    for item in plan.items where item.coming == coming && (outer == nil || item.outer == outer) {
      item.outer.flatMap(group)?.addOperation(operations[item.index])
      log.write(.added(item.index))
    }
  }
}

// MARK: - Deeds from outside

extension SoakWorld {
  /// Carries out a deed at the first tick after so many others.
  func after(_ ticks: Int, _ deed: @escaping @Sendable () -> Void) {
    let token = LiveCount.Token(pending)
    _ = clock.call(after: .milliseconds(ticks + 1), isTimeout: false) {
      DispatchQueue.global().async { withExtendedLifetime(token) { deed() } }
    }
  }

  func carryOut(_ deed: SoakDeed) {
    switch deed {
    case .cancel(let index, let threads):
      let operation = operations[index]
      DispatchQueue.concurrentPerform(iterations: threads) { _ in operation.cancel() }
    case .finish(let index):
      watch.leave(index)
      output(index).finish(returning: -1)
    case .resume(let index): group(index)?.isSuspended = false
    case .close(let index): group(index)?.staysOpen = false
    case .limit(let index, let limit): group(index)?.maxConcurrentOperationCount = limit
    case .takeGhostBack(let index): if let ghost = ghosts[index] { operations[index].removeDependency(ghost) }
    case .rename(let index): operations[index].name = "\(index)"
    case .lookAtEverything:
      for queue in queues { _ = queue.stallReport() }
      for case let group as GroupOperation in operations { _ = (group.stallReport(), group.failures) }
      _ = domains.flatMap { domain in SoakPlan.keys.map { domain.waiting(for: ExclusivityKey($0)) } }
    }
  }
}
