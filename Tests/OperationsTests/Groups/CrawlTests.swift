import Foundation
import Operations
import OperationsTestSupport
import Testing

/// Requests to four hosts, one of them ten times as slow as the others: at most six at once, and two per host. A slow
/// host does not hold up the others.
@Suite(.timeLimit(.minutes(5)))
struct CrawlTests {
  /// What executes, and when the last request of each host has ended.
  private struct Watch {
    var executing = Array(repeating: 0, count: 4)
    var ends = Array(repeating: Duration.zero, count: 4)
    var violations: [String] = []

    mutating func start(_ host: Int) {
      executing[host] += 1
      if executing[host] > 2 { violations.append("\(executing[host]) at once from host \(host)") }
      if executing.reduce(0, +) > 6 { violations.append("\(executing) at once") }
    }

    mutating func end(_ host: Int, at time: Duration) {
      executing[host] -= 1
      ends[host] = time
    }
  }

  private enum Form: CaseIterable { case group, queue, slotOfAGroup, slotOfAQueue, slotInsideKeys }

  /// Requests of 80 ms, and of 800 ms from the slow host.
  @Test(arguments: Form.allCases) private func hostsShareTheSlotsEvenly(form: Form) async throws {
    let (count, done, domain, watch) = (80, Journal<Int>(), ExclusivityDomain(), Locked(Watch()))
    let (clock, queue) = (ManualClock(), OperationQueue.limited(to: 6))
    let group = GroupOperation("crawl", maxConcurrentOperationCount: 6).started()
    let request = { @Sendable (host: Int) async throws in
      watch.withLock { $0.start(host) }
      try await clock.sleep(for: host == 0 ? .milliseconds(800) : .milliseconds(80))
      watch.withLock { $0.end(host, at: clock.now.offset) }
      done.write(host)
    }
    try await withThrowingTaskGroup(of: Void.self) { tasks in
      for index in 0..<count {
        let (host, key) = (index % 4, ExclusivityKey("host \(index % 4)"))
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
    let result = watch.withLock { $0 }
    #expect(result.violations.isEmpty)
    let (slowest, fastest) = (result.ends[1...].max() ?? .zero, result.ends[1...].min() ?? .zero)
    #expect(slowest <= .milliseconds(80) * (count / 4 * 3) / 4 * 1.25 && slowest <= fastest * 1.3)
  }
}
