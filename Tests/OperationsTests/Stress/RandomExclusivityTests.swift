import Foundation
import OperationsTestSupport
import Soak
import Testing

@testable import Operations

/// Random operations and groups, in several queues and a scheduler's, under random keys, modes, throttles and policies,
/// that wait for each other, time out and are suspended at moments that the machine chooses.
///
/// In every second world operations are cancelled. In the others they gain dependencies when they have been added,
/// which would trap if a cancelled operation had been started.
///
/// `RANDOM_GRAPH_SEED=17 swift test --filter RandomExclusivity` replays a seed.
@Suite(.timeLimit(.minutes(5)))
struct RandomExclusivityTests {
  /// A key as the members of one group see it.
  private struct Level: Hashable {
    let key: ExclusivityKey
    /// The number of the innermost group around the operation that holds the key. 0 is none.
    let group: Int
  }

  private typealias Want = (level: Level, limit: Int, weight: Int)

  /// Sees which operations execute under which key.
  private final class Watch: Sendable {
    private typealias Holder = (operation: AsyncOperation, limit: Int, weight: Int)

    private let holders = Locked<[Level: [Holder]]>([:])
    let violations = Journal<String>()

    func observer(of wants: [Want]) -> OperationObserver {
      OperationObserver(
        didStart: { self.begin($0, wants) },
        didFinish: { self.end($0, wants) }
      )
    }

    private func begin(_ operation: AsyncOperation, _ wants: [Want]) {
      for want in wants {
        let all = holders.withLock { holders in
          holders[want.level, default: []].append((operation, want.limit, want.weight))
          return holders[want.level] ?? []
        }
        // A finished operation leaves the list a moment later, and an operation that was ended may still be working.
        let present = all.filter { $0.operation === operation || !$0.operation.isFinished }
        let weight = present.map(\.weight).reduce(0, +)
        if !operation.isFinished, weight > present.map(\.limit).min() ?? .max {
          violations.write("\(present.map { "\($0.operation.displayName) \($0.limit)" }) under \(want.level.key)")
        }
      }
    }

    private func end(_ operation: AsyncOperation, _ wants: [Want]) {
      let left = holders.withLock { holders in
        wants.map { want -> [Holder] in
          defer { holders[want.level]?.removeAll { $0.operation === operation } }
          return holders[want.level] ?? []
        }
      }
      withExtendedLifetime(left) {}
    }
  }

  private final class World {
    var generator: SeededGenerator
    let domain = ExclusivityDomain()
    let watch = Watch()
    let live = LiveCount()
    let scheduler = SerialScheduler(name: "random")
    let suspended = OperationQueue.suspended()
    let cancels: Bool
    private let queues: [OperationQueue]
    private var groups = 0
    /// What is done to suspended groups when everything has been added.
    private(set) var lateActions: [@Sendable () -> Void] = []

    init(seed: UInt64) {
      generator = SeededGenerator(seed: seed)
      cancels = Bool.random(using: &generator)
      queues = [OperationQueue(), .limited(to: 1), .limited(to: 3), scheduler.queue, suspended]
    }

    func one(of count: Int) -> Bool { Int.random(in: 0..<count, using: &generator) == 0 }

    /// - Parameter outer: The groups around it, from the innermost outwards, and what they hold.
    private func wants(of names: [ExclusivityKey], inside outer: [(Int, [Want])], atMost count: Int) -> [Want] {
      names.shuffled(using: &generator).prefix(Int.random(in: 1...count, using: &generator)).map { key in
        let around = outer.lazy.compactMap { group, wants in wants.first { $0.level.key == key }.map { (group, $0) } }
          .first
        var limit = [1, 1, 2, 3, .max].randomElement(using: &generator) ?? 1
        var weight = limit == .max ? 1 : Int.random(in: 1...limit, using: &generator)
        // Two members with stronger claims than their groups would wait for each other.
        if !cancels, let (_, holder) = around {
          (limit, weight) = (max(limit, holder.limit), min(weight, holder.weight))
        }
        return (Level(key: key, group: around?.0 ?? 0), limit, weight)
      }
    }

    private func policy() -> ExclusivityPolicy {
      if !cancels { return .wait }
      return one(of: 8) ? .drop : one(of: 10) ? .replace : one(of: 10) ? .latest : .wait
    }

    private func give(_ wants: [Want], to operation: AsyncOperation) {
      for (level, limit, weight) in wants {
        switch limit {
        case 1: operation.exclusive(level.key, policy: policy(), in: domain)
        case .max: operation.shared(level.key, in: domain)
        default: operation.limited(level.key, to: limit, weight: weight, in: domain)
        }
        // An interval may be shorter than the time in which its timer is set.
        guard one(of: 4) else { continue }
        let interval = Duration.microseconds(Int.random(in: 1...300, using: &generator))
        operation.throttled(level.key, to: Int.random(in: 1...2, using: &generator), per: interval, in: domain)
      }
      if cancels, one(of: 8) { operation.waitLimit = .microseconds(Int.random(in: 0...3_000, using: &generator)) }
      let token = LiveCount.Token(live)
      operation.addObserver(OperationObserver(didFinish: { _ in withExtendedLifetime(token) {} }))
      // A retry holds its keys during its attempts.
      if !(operation is RetryOperation<Void>) { operation.addObserver(watch.observer(of: wants)) }
    }

    private func leaf(_ wants: [Want]) -> AsyncOperation {
      switch Int.random(in: 0..<6, using: &generator) {
      case 0: return GroupOperation([BlockOperation {}])
      case 1: return TaskOperation { await Task.yield() }
      case 2:
        return RetryOperation(attempts: 3) { [watch] attempt in
          let attempt = ResultOperation { if attempt < 2 { throw TestError("again") } }
          attempt.addObserver(watch.observer(of: wants))
          return attempt
        }
      case 3:
        let operation = AsyncOperation()
        operation.addCondition(OperationCondition(name: "later") { _ in await Task.yield() })
        return operation
      case 4:
        let operation = AsyncBlockOperation { _ in }
        operation.timeout = .milliseconds(3)
        return operation
      default: return AsyncBlockOperation { operation in DispatchQueue.global().async { operation.finish() } }
      }
    }

    /// A group whose members name its key, or later ones in the alphabet, so that no two groups wait for each other.
    private func group(_ names: ArraySlice<ExclusivityKey>, inside outer: [(Int, [Want])]) -> GroupOperation {
      groups += 1
      let group = GroupOperation("group \(groups)") {}
      let wants = wants(of: [names.first ?? "a"], inside: outer, atMost: 1)
      let around = [(groups, wants)] + outer
      give(wants, to: group)
      if one(of: 3) { group.maxConcurrentOperationCount = 1 }
      for _ in 0..<Int.random(in: 0...5, using: &generator) {
        if names.count > 1, one(of: 4) {
          group.addOperation(self.group(names.dropFirst(), inside: around))
        } else {
          group.addOperation(member(names, inside: around))
        }
      }
      if one(of: 3) { suspend(group, until: (0..<2).map { _ in member(names, inside: around) }) }
      return group
    }

    private func member(_ names: ArraySlice<ExclusivityKey>, inside outer: [(Int, [Want])]) -> AsyncOperation {
      let wants = wants(of: Array(names), inside: outer, atMost: 2)
      let member = leaf(wants)
      member.qualityOfService = one(of: 4) ? .utility : .default
      give(wants, to: member)
      return member
    }

    /// Suspends a group until it has more members. The earlier members may wait for these.
    private func suspend(_ group: GroupOperation, until newcomers: [AsyncOperation]) {
      (group.isSuspended, group.staysOpen) = (true, true)
      let waiting = cancels ? [] : group.operations.filter { _ in one(of: 2) }
      lateActions.append {
        group.addOperations(newcomers)
        for member in waiting { newcomers[0] ==> member }
        (group.isSuspended, group.staysOpen) = (false, false)
      }
    }

    func addition(after earlier: [AsyncOperation]) -> (operation: AsyncOperation, queue: OperationQueue) {
      let names: [ExclusivityKey] = ["a", "b", "c", "d", "e"]
      let operation: AsyncOperation
      if one(of: 4) {
        operation = group(names.dropFirst(Int.random(in: 0...3, using: &generator)), inside: [])
      } else {
        let wants = wants(of: names, inside: [], atMost: 2)
        operation = leaf(wants)
        give(wants, to: operation)
      }
      if one(of: 4), let other = earlier.randomElement(using: &generator) { operation.waits(for: other) }
      return (operation, queues.randomElement(using: &generator) ?? queues[0])
    }
  }

  @Test(arguments: SeededGenerator.seeds) func keysInAnyMode_keepTheirLimitsAndNothingHangs(seed: UInt64) async {
    let world = World(seed: seed)
    let (domain, watch, live) = (world.domain, world.watch, world.live)
    await round(world)
    #expect(watch.violations.entries.isEmpty, "RANDOM_GRAPH_SEED=\(seed)")
    await poll { domain.isUnused }
    await live.none()
  }

  private func round(_ world: World) async {
    var additions: [(operation: AsyncOperation, queue: OperationQueue)] = []
    for _ in 0..<80 { additions.append(world.addition(after: additions.map(\.operation))) }
    let victims = additions.filter { _ in world.cancels && world.one(of: 6) }.map(\.operation)
    let (lateActions, suspended) = (world.lateActions, world.suspended)
    let inSuspended = additions.filter { $0.queue === suspended }.map(\.operation)
    let free = inSuspended.filter { $0.dependencies.isEmpty && world.one(of: 3) }
    let waiting = world.cancels ? [] : inSuspended.filter { operation in !free.contains { $0 === operation } }
    // Some are added by Foundation's own method.
    let isForeign = additions.map { _ in world.one(of: 8) }
    let (domain, keys) = (world.domain, ["a", "c", "e"] as [ExclusivityKey])
    let limits = keys.map { ($0, Int.random(in: 0...2, using: &world.generator)) }
    await onThreads(3) { [additions] thread in
      if thread == 2 {
        for (key, limit) in limits {
          domain.setLimit(limit, for: key)
          domain.pause(key, for: .microseconds(limit * 200))
        }
        for operation in victims { operation.cancel() }
        return
      }
      for index in stride(from: thread, to: additions.count, by: 2) {
        let (operation, queue) = additions[index]
        if isForeign[index], queue.maxConcurrentOperationCount < 0 {
          queue.addByFoundation(operation)
        } else {
          queue.addOperation(operation)
        }
      }
    }
    for operation in waiting { if let other = free.randomElement(using: &world.generator) { other ==> operation } }
    suspended.isSuspended = false
    for (key, _) in limits { domain.setLimit(nil, for: key) }
    await onThreads(2) { thread in
      for index in stride(from: thread, to: lateActions.count, by: 2) { lateActions[index]() }
    }
    for (operation, _) in additions {
      await operation.finished()
      let isRefused = operation.errors.contains { OperationError.Code.waitCycle ~= $0 }
      #expect(world.cancels || !isRefused, "no two groups wait for each other")
    }
  }
}
