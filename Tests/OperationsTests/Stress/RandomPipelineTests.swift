import Foundation
import Operations
import OperationsTestSupport
import Soak
import Testing

/// Random networks of values: operations that pass, map, zip, collect, branch, wait for conditions, time out, pause and
/// try again, failing and cancelled at moments that the machine chooses.
///
/// `RANDOM_GRAPH_SEED=17 swift test --filter RandomPipeline` replays a seed.
@Suite(.timeLimit(.minutes(5)))
struct RandomPipelineTests {
  /// A value is the number of operations that it came through, so that a wrong or missing input shows.
  private final class Network {
    var generator: SeededGenerator
    let live = LiveCount()
    let clock = ManualClock()
    let finishes = Journal<ObjectIdentifier>()
    private(set) var operations: [ResultOperation<Int>] = []

    init(seed: UInt64) {
      generator = SeededGenerator(seed: seed)
      for _ in 0..<Int.random(in: 50...250, using: &generator) {
        let operation = make()
        operation.addObserver(OperationObserver(didFinish: { [finishes] in finishes.write(ObjectIdentifier($0)) }))
        operations.append(operation)
      }
    }

    private func oneOfTen() -> Bool { Int.random(in: 0..<10, using: &generator) == 0 }

    private func earlier() -> ResultOperation<Int>? { operations.suffix(30).randomElement(using: &generator) }

    private func make() -> ResultOperation<Int> {
      let token = LiveCount.Token(live)
      let fails = oneOfTen()
      @Sendable func next(_ value: Int) throws -> Int {
        try withExtendedLifetime(token) { if fails { throw TestError("failed") } else { value + 1 } }
      }
      let operation = link(next)
      if oneOfTen() { operation.timeout = .seconds(2) }
      if oneOfTen() { operation.addCondition(.noFailedDependencies) }
      if oneOfTen() {
        operation.addCondition(
          OperationCondition(name: "later") { [clock] _ in
            try await clock.sleep(for: .seconds(1))
            withExtendedLifetime(token) {}
          }
        )
      }
      return operation
    }

    private func link(_ next: @escaping @Sendable (Int) throws -> Int) -> ResultOperation<Int> {
      guard let first = earlier(), let second = earlier() else { return ResultOperation { try next(0) } }
      switch Int.random(in: 0..<10, using: &generator) {
      case 0: return ResultOperation { try next(0) }
      case 1: return first.map(next)
      case 2:
        return first.map { value in
          await Task.yield()
          return try next(value)
        }
      case 3: return zip(first, second).map { try next(max($0.0, $0.1)) }
      case 4: return collect([first, second, first]).map { try next($0.max() ?? 0) }
      case 5: return collect([first, second], input: .optional).map { try next($0.max() ?? 0) }
      case 6: return first.flatMap { value in ResultOperation { value }.map(next) }
      case 7:
        let delay = DelayOperation(.seconds(1))
        let operation = TransformOperation(next)
        delay ==> operation
        delay.clock = clock
        return first.pass(to: operation)
      case 8:
        return first.flatMap { value in
          RetryOperation(attempts: 3, backoff: .constant(.seconds(1))) { attempt in
            TaskOperation { if attempt < 3 { throw TestError("again") } else { try next(value) } }
          }
        }
      default:
        return first.map { [clock] value in
          try await clock.sleep(for: .seconds(3))
          return try next(value)
        }
      }
    }

    /// Cancels some, ends one or the other from outside, and lets the time pass until all have finished.
    func run() async {
      let victims = operations.filter { _ in Int.random(in: 0..<20, using: &generator) == 0 }
      await onThreads(2) { thread in
        for (index, victim) in victims.enumerated() where index.isMultiple(of: 2) == (thread == 0) {
          if index.isMultiple(of: 5) { victim.finish(returning: 1) } else { victim.cancel() }
        }
      }
      let end = Gate()
      Task { [operations] in
        for operation in operations { await operation.finished() }
        end.open()
      }
      while !end.isOpen {
        clock.advance(by: .seconds(1))
        await Task.yield()
      }
    }

    func check(_ seed: UInt64) async {
      #expect(finishes.count == operations.count, "seed \(seed)")
      #expect(Set(finishes.entries).count == operations.count, "seed \(seed)")
      for operation in operations {
        guard case .failure(let error) = operation.result else { continue }
        switch error {
        case is TestError, is CancellationError, is AggregateError: break
        case OperationError.Code.inputUnavailable, OperationError.Code.conditionFailed, OperationError.Code.timedOut:
          #expect(error.localizedDescription.count < 2000, "seed \(seed)")
        default: Issue.record("seed \(seed): \(error)")
        }
      }
      // A sleep that has been cancelled ends on a thread of its own.
      await poll { clock.sleepers == 0 }
    }
  }

  /// Makes a network, has `body` add and run it, and checks it and that nothing of it stays alive.
  private func withNetwork(_ seed: UInt64, _ body: (Network) async -> Void) async {
    let live: LiveCount
    do {
      let network = Network(seed: seed)
      live = network.live
      await body(network)
      await network.check(seed)
    }
    await live.none()
  }

  @Test(arguments: SeededGenerator.seeds)
  func inQueues(seed: UInt64) async {
    await withNetwork(seed) { network in
      let queues = (1...3).map { OperationQueue.limited(to: $0) }
      for operation in network.operations { operation.clock = network.clock }
      for operation in network.operations.shuffled(using: &network.generator) {
        queues.randomElement(using: &network.generator)!.addGraph(endingIn: operation)
      }
      await network.run()
    }
  }

  @Test(arguments: SeededGenerator.seeds)
  func inAGroup(seed: UInt64) async {
    await withNetwork(seed) { network in
      let group = GroupOperation()
      group.clock = network.clock
      group.maxConcurrentOperationCount = Int.random(in: 1...4, using: &network.generator)
      if seed.isMultiple(of: 6) { group.timeout = .seconds(4) }
      let updates = Task { [progress = group.progressUpdates] in
        for await fraction in progress where !(0...1).contains(fraction) { return fraction }
        return 0.5
      }
      for operation in network.operations { group.addGraph(endingIn: operation) }
      OperationQueue().addOperation(group)
      await network.run()
      await group.finished()
      #expect(await updates.value == 0.5, "seed \(seed)")
      #expect(group.progress.fractionCompleted == 1, "seed \(seed)")
    }
  }
}
