import Foundation
import OperationsTestSupport
import Soak
import Testing

@testable import Operations

/// Operations behind others that a full or suspended queue or group does not start.
@Suite(.timeLimit(.minutes(5)))
struct PatienceTests {
  private let domain = ExclusivityDomain()
  private let queue = OperationQueue()
  private let journal = Journal<String>()

  private func note(_ name: String) -> NoteOperation { NoteOperation(name, journal) }

  /// Each of them may delay others by its patience, here two seconds, and all of them together by no more. One after the
  /// other would take longer than the time limit.
  @Test(arguments: [false, true])
  func manySuspendedPlaces_delayOthersOnce(areGroups: Bool) async {
    let domain = ExclusivityDomain(patience: 2_000)
    let waiters = (0..<200).map { note("\($0)").exclusive("a", in: domain) }
    let groups = areGroups ? waiters.map { GroupOperation([$0]) } : []
    let queues = areGroups ? [] : waiters.map { _ in OperationQueue.suspended() }
    for group in groups { group.isSuspended = true }
    queue.addOperations(groups)
    for (queue, waiter) in zip(queues, waiters) { queue.addOperation(waiter) }
    await poll { domain.waiting(for: "a").count == 200 }
    let behind = note("behind").exclusive("a", in: domain)
    await queue.run(settling: [behind])
    #expect(journal.entries == ["behind"])
    for group in groups { group.isSuspended = false }
    for queue in queues { queue.isSuspended = false }
    for waiter in waiters { await waiter.finished() }
    #expect(journal.count == 201)
  }

  @Test func noMoreOperationsOfAQueueAreReady_thanTheirKeyAdmits() async {
    let suspended = OperationQueue.suspended()
    let operations = (0..<10).map { note("\($0)").limited("a", to: 2, in: domain) }
    suspended.addOperations(operations)
    // It starts when the 20 ms of the queue have passed.
    await queue.run(settling: [note("other").limited("a", to: 2, in: domain)])
    #expect(operations.count { $0.isReady } == 2)
    suspended.isSuspended = false
    await suspended.finished()
    #expect(journal.count == 11)
  }

  // MARK: Random queues

  /// The weight that executes under each key, whose claims have one limit.
  private final class Watch: Sendable {
    private let limits: [Int]
    private let sums: Locked<[Int]>
    let violations = Journal<String>()

    init(limits: [Int]) {
      self.limits = limits
      sums = Locked(limits.map { _ in 0 })
    }

    /// Returns an operation under a key that finishes on another thread.
    func operation(under key: Int, weight: Int, in domain: ExclusivityDomain) -> AsyncOperation {
      let operation = AsyncBlockOperation { [self] operation in
        let sum = change(key, by: weight)
        if sum > limits[key] { violations.write("\(sum) under \(key), which admits \(limits[key])") }
        DispatchQueue.global().async { [self] in
          change(key, by: -weight)
          operation.finish()
        }
      }
      return operation.limited("\(key)", to: limits[key], weight: weight, in: domain)
    }

    @discardableResult
    private func change(_ key: Int, by weight: Int) -> Int {
      sums.withLock { sums in
        sums[key] += weight
        return sums[key]
      }
    }
  }

  @Test(arguments: SeededGenerator.seeds)
  func fullAndSuspendedQueues_arePassed(seed: UInt64) async {
    var generator = SeededGenerator(seed: seed)
    let (domain, limits) = (ExclusivityDomain(), (0..<3).map { _ in Int.random(in: 1...3, using: &generator) })
    let watch = Watch(limits: limits)
    var (queues, held, operations): ([OperationQueue], [HeldOperation], [AsyncOperation]) = ([], [], [])
    for index in 0..<Int.random(in: 60...120, using: &generator) {
      let queue = OperationQueue.limited(to: 1)
      if Bool.random(using: &generator) {
        queue.isSuspended = true
      } else {
        held.append(await queue.holding())
      }
      queues.append(queue)
      for count in 0..<Int.random(in: 1...3, using: &generator) {
        let key = (index + count) % 3
        let weight = Int.random(in: 1...limits[key], using: &generator)
        operations.append(watch.operation(under: key, weight: weight, in: domain))
        queue.addOperation(operations[operations.count - 1])
      }
    }
    let others = limits.indices.map { watch.operation(under: $0, weight: limits[$0], in: domain) }
    await OperationQueue().run(settling: others)
    for queue in queues { queue.isSuspended = false }
    for operation in held { operation.gate.open() }
    for operation in operations { await operation.finished() }
    #expect(watch.violations.entries.isEmpty, "seed \(seed)")
  }
}
