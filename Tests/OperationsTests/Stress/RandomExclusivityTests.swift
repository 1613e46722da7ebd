import Foundation
import OperationsTestSupport
import Soak
import Testing

@testable import Operations

/// Random operations and groups, of both kinds and in several queues, under random keys and policies, that wait for
/// each other and are cancelled at moments that the machine chooses.
///
/// `RANDOM_GRAPH_SEED=17 swift test --filter RandomExclusivity` replays a seed.
@Suite(.timeLimit(.minutes(5)))
struct RandomExclusivityTests {
  /// Sees who executes under which key.
  private final class Watch: Sendable {
    private struct State {
      var leaves: [ExclusivityKey: Int] = [:]
      var groups: [ExclusivityKey: [(number: Int, operation: AsyncOperation)]] = [:]
      var violations: [String] = []

      /// Groups under the key that are none of those. One that has finished is told so a moment later.
      func strangers(under key: ExclusivityKey, to outer: [Int]) -> [Int] {
        groups[key, default: []].filter { !outer.contains($0.number) && !$0.operation.isFinished }.map(\.number)
      }
    }

    private let state = Locked(State())

    var violations: [String] { state.withLock { $0.violations } }

    /// - Parameter outer: The groups around it.
    func begin(_ keys: [ExclusivityKey], inside outer: [Int]) {
      state.withLock { state in
        for key in keys {
          state.leaves[key, default: 0] += 1
          if state.leaves[key] != 1 { state.violations.append("two under \(key)") }
          if !state.strangers(under: key, to: outer).isEmpty { state.violations.append("a group under \(key)") }
        }
      }
    }

    func end(_ keys: [ExclusivityKey]) {
      state.withLock { state in for key in keys { state.leaves[key, default: 0] -= 1 } }
    }

    func groupBegan(_ group: Int, _ operation: AsyncOperation, _ keys: [ExclusivityKey], inside outer: [Int]) {
      state.withLock { state in
        for key in keys {
          if state.leaves[key, default: 0] != 0 { state.violations.append("a leaf beside a group under \(key)") }
          if !state.strangers(under: key, to: outer).isEmpty { state.violations.append("two groups under \(key)") }
          state.groups[key, default: []].append((group, operation))
        }
      }
    }

    func groupEnded(_ group: Int, _ keys: [ExclusivityKey]) {
      state.withLock { state in for key in keys { state.groups[key]?.removeAll { $0.number == group } } }
    }
  }

  /// What is to be added, and where.
  private struct Addition {
    let operation: Operation
    let keys: [ExclusivityKey]
    let policy: ExclusivityPolicy
    let queue: OperationQueue
  }

  private final class World {
    var generator: SeededGenerator
    let domain = ExclusivityDomain()
    let watch = Watch()
    let live = LiveCount()
    private let queues = [OperationQueue(), .limited(to: 1), .limited(to: 3)]
    private var groups = 0

    init(seed: UInt64) { generator = SeededGenerator(seed: seed) }

    private func one(of count: Int) -> Bool { Int.random(in: 0..<count, using: &generator) == 0 }

    private func keys(of names: [ExclusivityKey]) -> [ExclusivityKey] {
      Array(names.shuffled(using: &generator).prefix(Int.random(in: 1...2, using: &generator)))
    }

    private func policy() -> ExclusivityPolicy { one(of: 5) ? .drop : one(of: 8) ? .replace : .wait }

    /// - Parameter limited: A plain operation that has its keys but no slot cannot give them back: it is for where
    ///   there is no limit.
    private func leaf(_ keys: [ExclusivityKey], inside outer: [Int], limited: Bool) -> Operation {
      let token = LiveCount.Token(live)
      let watch = watch
      switch Int.random(in: 0..<4, using: &generator) {
      case 0 where !limited:
        return BlockOperation {
          watch.begin(keys, inside: outer)
          watch.end(keys)
          withExtendedLifetime(token) {}
        }
      case 1:
        return TaskOperation {
          watch.begin(keys, inside: outer)
          await Task.yield()
          watch.end(keys)
          withExtendedLifetime(token) {}
        }
      case 2:
        return RetryOperation(attempts: 3) { attempt in
          ResultOperation {
            watch.begin(keys, inside: outer)
            watch.end(keys)
            try withExtendedLifetime(token) { if attempt < 2 { throw TestError("again") } }
          }
        }
      default:
        return AsyncBlockOperation { operation in
          watch.begin(keys, inside: outer)
          DispatchQueue.global().async {
            watch.end(keys)
            withExtendedLifetime(token) { operation.finish() }
          }
        }
      }
    }

    /// A group, with the keys that it is to be added under. Members name those keys, or others that come later in the
    /// alphabet: so no two groups wait for each other.
    private func group(_ names: ArraySlice<ExclusivityKey>, inside outer: [Int]) -> (GroupOperation, [ExclusivityKey]) {
      groups += 1
      let number = groups
      let keys = [names.first ?? "a"]
      let group = GroupOperation("group \(number)") {}
      let isLimited = one(of: 3)
      if isLimited { group.maxConcurrentOperationCount = 1 }
      let watch = watch
      group.addObserver(
        OperationObserver(
          didStart: { watch.groupBegan(number, $0, keys, inside: outer) },
          didFinish: { _ in watch.groupEnded(number, keys) }
        )
      )
      for _ in 0..<Int.random(in: 0...5, using: &generator) {
        if names.count > 1, one(of: 4) {
          let (inner, innerKeys) = self.group(names.dropFirst(), inside: [number] + outer)
          group.addOperation(inner, exclusive: innerKeys, policy: policy(), in: domain)
        } else {
          let memberKeys = self.keys(of: Array(names))
          group.addOperation(
            leaf(memberKeys, inside: [number] + outer, limited: isLimited),
            exclusive: memberKeys,
            policy: policy(),
            in: domain
          )
        }
      }
      return (group, keys)
    }

    func addition(after earlier: [Operation]) -> Addition {
      let names: [ExclusivityKey] = ["a", "b", "c", "d", "e"]
      let queue = queues.randomElement(using: &generator) ?? queues[0]
      var (operation, keys): (Operation, [ExclusivityKey])
      if one(of: 4) {
        (operation, keys) = group(names.dropFirst(Int.random(in: 0...3, using: &generator)), inside: [])
      } else {
        keys = self.keys(of: names)
        operation = leaf(keys, inside: [], limited: queue.maxConcurrentOperationCount > 0)
      }
      if one(of: 4), let other = earlier.randomElement(using: &generator) { operation.waits(for: other) }
      return Addition(
        operation: operation,
        keys: keys,
        policy: policy(),
        queue: queue
      )
    }
  }

  @Test(arguments: SeededGenerator.seeds) func neverTwoAtOnceAndEverybodyFinishes(seed: UInt64) async {
    let world = World(seed: seed)
    let (domain, watch, live) = (world.domain, world.watch, world.live)
    await round(world)
    #expect(watch.violations.isEmpty, "RANDOM_GRAPH_SEED=\(seed)")
    while !domain.state.withLock({ $0.table.isEmpty }) { await Task.yield() }
    await live.none()
  }

  private func round(_ world: World) async {
    var additions: [Addition] = []
    for _ in 0..<80 { additions.append(world.addition(after: additions.map(\.operation))) }
    let victims = additions.filter { _ in Int.random(in: 0..<6, using: &world.generator) == 0 }.map(\.operation)
    let all = additions
    let domain = world.domain
    await onThreads(3) { thread in
      if thread == 2 {
        for operation in victims { operation.cancel() }
        return
      }
      for index in stride(from: thread, to: all.count, by: 2) {
        let addition = all[index]
        addition.queue.addOperation(addition.operation, exclusive: addition.keys, policy: addition.policy, in: domain)
      }
    }
    for addition in additions { await addition.operation.finished() }
    #expect(additions.allSatisfy { $0.operation.isFinished })
  }
}
