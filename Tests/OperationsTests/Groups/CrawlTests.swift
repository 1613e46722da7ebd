import Foundation
import Operations
import OperationsTestSupport
import Testing

/// Requests to four hosts, one of them ten times as slow as the others: at most six at once, and two per host.
@Suite(.timeLimit(.minutes(5)))
struct CrawlTests {
  private enum Form: CaseIterable { case group, queue, slotOfAGroup, slotOfAQueue, slotInsideKeys }

  @Test(arguments: Form.allCases) private func aSlowHost_doesNotHoldUpTheOthers(form: Form) async throws {
    let (count, done, domain, clock) = (80, Journal<Int>(), ExclusivityDomain(), ManualClock())
    let (queue, ends) = (OperationQueue.limited(to: 6), Locked(Array(repeating: Duration.zero, count: 4)))
    let group = GroupOperation("crawl", maxConcurrentOperationCount: 6).started()
    let request = { @Sendable (host: Int) async throws in
      try await clock.sleep(for: host == 0 ? .milliseconds(800) : .milliseconds(80))
      ends.withLock { $0[host] = clock.now.offset }
      done.write(host)
    }
    try await withThrowingTaskGroup(of: Void.self) { tasks in
      for host in (0..<count).map({ $0 % 4 }) {
        let key = ExclusivityKey("host \(host)")
        let claim = ExclusivityClaim.limited(key, to: 2)
        switch form {
        case .group: group.addOperation(TaskOperation { try await request(host) }.limited(key, to: 2, in: domain))
        case .queue: queue.addOperation(TaskOperation { try await request(host) }.limited(key, to: 2, in: domain))
        case .slotOfAGroup:
          tasks.addTask { try await group.withSlot(holding: claim, in: domain) { try await request(host) } }
        case .slotOfAQueue:
          tasks.addTask { try await queue.withSlot(holding: claim, in: domain) { try await request(host) } }
        case .slotInsideKeys:
          tasks.addTask {
            try await withKeys(claim, in: domain) { try await queue.withSlot { try await request(host) } }
          }
        }
      }
      await clock.run(until: { done.count == count }, grace: .milliseconds(40))
      try await tasks.waitForAll()
    }
    group.finish()
    let others = ends.withLock { $0[1...] }
    let (slowest, fastest) = (others.max() ?? .zero, others.min() ?? .zero)
    #expect(slowest <= .milliseconds(80) * (count / 4 * 3) / 4 * 1.25 && slowest <= fastest * 1.3)
  }
}
