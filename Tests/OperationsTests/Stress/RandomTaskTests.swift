import Foundation
import OperationsTestSupport
import Soak
import Testing

@testable import Operations

/// Random tasks that hold keys and slots, nested to any depth and in any order of the keys, with child tasks, operations,
/// groups and retries inside, some of them cancelled, beside operations and groups under the same keys with any policy,
/// in queues of all kinds.
///
/// Only the order of slots is given: a limited one is taken in the order of the places, and before all keys, because
/// the package does not search for a deadlock of slots.
///
/// `RANDOM_GRAPH_SEED=17 swift test --filter RandomTask` replays a seed.
@Suite(.timeLimit(.minutes(5)))
struct RandomTaskTests {
  private struct Want {
    let key: ExclusivityKey
    let limit: Int
    let weight: Int
    let isThrottled: Bool
  }

  private indirect enum Step {
    case keys([Want], [Step])
    case slot(place: Int, [Want], [Step])
    case operation([Want], [Step])
    case group([Want], limit: Int, [[Step]])
    case retry([Want], [Step])
    case children([[Step]], areCancelled: Bool)
    /// A task that inherits the keys, and one that does not.
    case task([Step])
    case detached([Step])
    case results(count: Int, [Step])
    case first([Step])
    case yield
    case fail
  }

  /// A key as the work inside one of its holders sees it.
  private struct Level: Hashable {
    let key: ExclusivityKey
    /// The number of the innermost holder around the work. 0 is none.
    let holder: Int
  }

  /// The holders around some work, from the innermost outwards.
  private typealias Around = [(number: Int, keys: Set<ExclusivityKey>)]

  /// Sees who holds which key, and how many are in a place.
  private final class Watch: Sendable {
    private struct State {
      var holders: [Level: [(number: Int, want: Want)]] = [:]
      var places = [0, 0, 0, 0]
      var count = 0
    }

    private let state = Locked(State())
    let violations = Journal<String>()

    /// Returns the number of a new holder.
    func newNumber() -> Int {
      state.withLock { state in
        state.count += 1
        return state.count
      }
    }

    nonisolated(nonsending) func hold(
      _ wants: [Want],
      in place: Int? = nil,
      limit: Int = .max,
      inside around: Around,
      _ body: (Around) async throws -> Void
    ) async throws {
      let levels = wants.map { want in
        Level(key: want.key, holder: around.first { $0.keys.contains(want.key) }?.number ?? 0)
      }
      let number = newNumber()
      let excess = state.withLock { state in
        var excess: [ExclusivityKey] = []
        for (level, want) in zip(levels, wants) {
          state.holders[level, default: []].append((number, want))
          let holders = state.holders[level] ?? []
          let sum = holders.map(\.want.weight).reduce(0, +)
          if sum > holders.map(\.want.limit).min() ?? .max { excess.append(want.key) }
        }
        if let place {
          state.places[place] += 1
          if state.places[place] > limit { excess.append("place \(place)") }
        }
        return excess
      }
      if !excess.isEmpty { violations.write("\(number) exceeds \(excess) inside \(around)") }
      defer {
        state.withLock { state in
          for level in levels { state.holders[level]?.removeAll { $0.number == number } }
          if let place { state.places[place] -= 1 }
        }
      }
      try await body([(number, Set(wants.map(\.key)))] + around)
    }
  }

  private struct Plan {
    static let keys: [ExclusivityKey] = ["a", "b", "c", "d"]

    var generator: SeededGenerator

    mutating func one(of count: Int) -> Bool { generator.one(of: count) }
    mutating func number(_ range: ClosedRange<Int>) -> Int { generator.number(range) }

    mutating func wants(atLeast count: Int = 0) -> [Want] {
      Self.keys.shuffled(using: &generator).prefix(number(count...2)).map { key in
        let limit = [1, 1, 2, 3, .max].randomElement(using: &generator) ?? 1
        let weight = limit == .max ? 1 : number(1...limit)
        return Want(key: key, limit: limit, weight: weight, isThrottled: one(of: 10))
      }
    }

    /// - Parameter place: The first place whose slot may be taken. The last two have no limit.
    mutating func steps(depth: Int, from place: Int = 0) -> [Step] {
      if depth == 0 { return one(of: 8) ? [.fail] : [.yield] }
      return (0..<number(1...2)).map { _ in step(depth: depth - 1, from: place) }
    }

    private mutating func step(depth: Int, from place: Int) -> Step {
      func several(_ plan: inout Self) -> [[Step]] {
        (0..<plan.number(1...3)).map { _ in plan.steps(depth: depth, from: 2) }
      }
      switch number(0...15) {
      case 0...3: return .keys(wants(atLeast: 1), steps(depth: depth, from: 2))
      case 4...6:
        let place = number(min(place, 3)...3)
        let wants = wants()
        return .slot(place: place, wants, steps(depth: depth, from: wants.isEmpty ? place + 1 : 2))
      case 7: return .operation(wants(), steps(depth: depth, from: 2))
      case 8: return .group(wants(), limit: number(1...2), several(&self))
      case 9: return .retry(wants(), steps(depth: depth, from: 2))
      case 10: return .children(several(&self), areCancelled: one(of: 3))
      case 11: return .task(steps(depth: depth, from: 2))
      case 12: return .detached(steps(depth: depth, from: 0))
      case 13: return .results(count: number(1...4), steps(depth: depth, from: 2))
      case 14: return .first(steps(depth: depth, from: 2))
      default: return one(of: 4) ? .fail : .yield
      }
    }
  }

  private final class World: Sendable {
    let domain = ExclusivityDomain()
    let watch = Watch()
    let live = LiveCount()
    private let queues = [OperationQueue.limited(to: 1), OperationQueue()]
    let suspended = OperationQueue.suspended()
    private let groups = [2, -1].map { GroupOperation("group", maxConcurrentOperationCount: $0).started() }
    private let detached = Locked<[Task<Void, Never>]>([])

    /// Carries out steps, and throws what the first failing one does.
    @concurrent func run(_ steps: [Step], inside around: Around = []) async throws {
      let token = LiveCount.Token(live)
      for step in steps { try await run(step, inside: around) }
      withExtendedLifetime(token) {}
    }

    private func run(_ step: Step, inside around: Around) async throws {
      switch step {
      case .yield: await Task.yield()
      case .fail: throw TestError("planned")
      case .keys(let wants, let steps):
        let claims = claims(wants)
        // The number of claims is not known to the compiler.
        let (first, second) = (claims[0], claims[claims.count - 1])
        try await withKeys(first, second, in: domain) {
          try await watch.hold(wants, inside: around) { try await run(steps, inside: $0) }
        }
      case .slot(let place, let wants, let steps): try await slot(place, wants, steps, inside: around)
      case .operation(let wants, let steps): try await queues[1].run(operation(wants, steps, inside: around))
      case .group(let wants, let limit, let members):
        let group = GroupOperation([], maxConcurrentOperationCount: limit)
        give(wants, to: group)
        // A member sees the group only as a holder.
        let inside = [(watch.newNumber(), Set(wants.map(\.key)))] + around
        for steps in members { group.addOperation(operation([], steps, inside: inside)) }
        try await queues[1].run(group)
      case .retry(let wants, let steps):
        let retry = RetryOperation<Void>(attempts: 2, backoff: .constant(.microseconds(50))) { attempt in
          if attempt == 1 { throw TestError("again") }
          try await self.watch.hold(wants, inside: around) { try await self.run(steps, inside: $0) }
        }
        give(wants, to: retry)
        try await queues[1].run(retry)
      case .children(let children, let areCancelled):
        try await withThrowingTaskGroup(of: Void.self) { group in
          for steps in children { group.addTask { try await self.run(steps, inside: around) } }
          if areCancelled { group.cancelAll() }
          try await group.waitForAll()
        }
      case .task(let steps): try await Task { try await self.run(steps, inside: around) }.value
      case .detached(let steps):
        let task = Task.detached { await self.runToTheEnd(steps) }
        detached.withLock { $0.append(task) }
      case .results(let count, let steps):
        let results = queues[1].results(of: 0..<count, atMost: 2) { _ in try await self.run(steps, inside: around) }
        for await (_, result) in results { try result.get() }
      case .first(let steps):
        // The loser ends a moment later than the step, and is therefore no work inside the holders.
        let work = (0..<2).map { _ in TaskOperation { await Task.yield() } }
        try await queues[1].first(of: work)
        try await run(steps, inside: around)
      }
    }

    private func slot(_ place: Int, _ wants: [Want], _ steps: [Step], inside around: Around) async throws {
      let claims = claims(wants)
      let body = { @Sendable in
        try await self.watch.hold(wants, in: place, limit: [1, 2, .max, .max][place], inside: around) {
          try await self.run(steps, inside: $0)
        }
      }
      // Places 0 and 2 are queues.
      let isQueue = place.isMultiple(of: 2)
      let index = place / 2
      guard let first = claims.first, let last = claims.last else {
        if isQueue { return try await queues[index].withSlot("slot", body) }
        return try await groups[index].withSlot("slot", body)
      }
      if isQueue { return try await queues[index].withSlot("slot", holding: first, last, in: domain, body) }
      try await groups[index].withSlot("slot", holding: first, last, in: domain, body)
    }

    private func operation(_ wants: [Want], _ steps: [Step], inside around: Around) -> TaskOperation<Void> {
      let operation = TaskOperation<Void> {
        try await self.watch.hold(wants, inside: around) { try await self.run(steps, inside: $0) }
      }
      give(wants, to: operation)
      return operation
    }

    private func claims(_ wants: [Want]) -> [ExclusivityClaim] {
      wants.map { want in
        if want.isThrottled, want.limit == .max { return .throttled(want.key, to: 1, per: .microseconds(50)) }
        return .limited(want.key, to: want.limit, weight: want.weight)
      }
    }

    private func give(_ wants: [Want], to operation: AsyncOperation, _ policy: ExclusivityPolicy = .wait) {
      for want in wants {
        if want.isThrottled { operation.throttled(want.key, to: 2, per: .microseconds(50), in: domain) }
        let policy = want.limit == 1 ? policy : .wait
        let claim = KeyClaim(domain: domain, key: want.key, limit: want.limit, weight: want.weight, policy: policy)
        operation.addClaims([claim])
      }
    }

    /// Adds an operation, or a group whose members request keys, to a queue or to the limited group.
    func add(_ plan: inout Plan) -> AsyncOperation {
      let wants = plan.wants()
      let operation: AsyncOperation
      if plan.one(of: 4) {
        let group = GroupOperation("group", maxConcurrentOperationCount: plan.one(of: 3) ? 1 : -1)
        let inside: Around = [(watch.newNumber(), Set(wants.map(\.key)))]
        for _ in 0..<plan.number(0...5) { group.addOperation(self.operation(plan.wants(), [.yield], inside: inside)) }
        operation = group
      } else {
        operation = TaskOperation { try await self.watch.hold(wants, inside: []) { _ in await Task.yield() } }
      }
      let policy = [ExclusivityPolicy.wait, .replace, .latest, .drop].randomElement(using: &plan.generator) ?? .wait
      give(wants, to: operation, policy)
      if plan.one(of: 8) { operation.waitLimit = .microseconds(plan.number(0...3_000)) }
      switch plan.number(0...3) {
      case 0: groups[0].addOperation(operation)
      case 1: queues[0].addOperation(operation)
      case 2: queues[1].addByFoundation(operation)
      default: suspended.addOperation(operation)
      }
      return operation
    }

    func runToTheEnd(_ steps: [Step]) async {
      do { try await run(steps) } catch { check(error) }
    }

    private func check(_ error: any Error) {
      switch error {
      case is CancellationError, is TestError: break
      case let error as OperationError where [.waitCycle, .replaced, .excluded].contains(error.code): break
      case let error as AggregateError: for failure in error.failures { check(failure.error) }
      default: watch.violations.write("\(error)")
      }
    }

    func end() async {
      while let task = detached.withLock({ $0.popLast() }) { await task.value }
      for queue in queues { await queue.finished() }
      for group in groups { await group.waitForRoom(below: 1) }
      for group in groups { group.finish() }
    }
  }

  @Test(arguments: SeededGenerator.seeds) func tasksAmongOperations_keepLimitsAndLeaveNothing(seed: UInt64) async {
    var plan = Plan(generator: SeededGenerator(seed: seed))
    for _ in 0..<(isThorough ? 60 : 8) {
      let world = World()
      let (domain, live, watch) = (world.domain, world.live, world.watch)
      await round(&plan, consume world)
      #expect(watch.violations.entries.isEmpty, "RANDOM_GRAPH_SEED=\(seed)")
      await poll { domain.isUnused }
      await live.none()
    }
  }

  private func round(_ plan: inout Plan, _ world: World) async {
    var tasks: [Task<Void, Never>] = []
    var operations: [AsyncOperation] = []
    for _ in 0..<plan.number(4...16) {
      let steps = plan.steps(depth: plan.number(1...4))
      tasks.append(Task { await world.runToTheEnd(steps) })
      for _ in 0..<plan.number(0...2) { operations.append(world.add(&plan)) }
      if plan.one(of: 4) { tasks.randomElement(using: &plan.generator)?.cancel() }
      if plan.one(of: 8) { operations.randomElement(using: &plan.generator)?.cancel() }
      if plan.one(of: 4) { await Task.yield() }
    }
    world.suspended.isSuspended = false
    for task in tasks { await task.value }
    for operation in operations { await operation.finished() }
    for operation in operations where !(operation is GroupOperation) {
      let isRefused = operation.errors.contains { OperationError.Code.waitCycle ~= $0 }
      #expect(!isRefused, "an operation outside all holders waits for none of them in a cycle")
    }
    await world.end()
  }
}
