import Foundation
import OperationsTestSupport
import Soak
import Testing

@testable import Operations

/// Downloads from four hosts, one of them ten times as slow as the others: at most six at once, two per host, twenty
/// starts a second per host, and a delay after each “busy”. Then the same without rates and delays, in every form.
@Suite(.timeLimit(.minutes(5)))
struct CrawlTests {
  /// A page is available after the “busy” answers.
  private typealias Page = (host: Int, busyAnswers: Int)

  private static func duration(of host: Int) -> Duration { host == 0 ? .seconds(1) : .milliseconds(100) }

  /// What executes, and when it has started.
  private struct Watch {
    var maximumRate = 20
    var executing = Array(repeating: 0, count: 4)
    var starts = Array(repeating: [Duration](), count: 4)
    var ends = Array(repeating: Duration.zero, count: 4)
    var violations: [String] = []

    mutating func start(_ host: Int, at time: Duration) {
      executing[host] += 1
      starts[host].append(time)
      if executing[host] > 2 { violations.append("\(executing[host]) at once from host \(host)") }
      if executing.reduce(0, +) > 6 { violations.append("\(executing) at once") }
      let recent = starts[host].count { time - $0 < .seconds(1) }
      if recent > maximumRate { violations.append("\(recent) starts of host \(host) in a second") }
    }

    mutating func end(_ host: Int, at time: Duration) {
      executing[host] -= 1
      ends[host] = time
    }
  }

  private let clock = ManualClock()
  private let domain = ExclusivityDomain()
  private let watch = Locked(Watch())

  private func download(_ page: Page) -> AsyncOperation {
    RetryOperation(attempts: page.busyAnswers + 1, backoff: .constant(.milliseconds(300))) { [clock, watch] attempt in
      TaskOperation<Void> {
        watch.withLock { $0.start(page.host, at: clock.now.offset) }
        try await clock.sleep(for: Self.duration(of: page.host))
        watch.withLock { $0.end(page.host, at: clock.now.offset) }
        if attempt <= page.busyAnswers { throw TestError("busy") }
      }
    }
    .limited("host \(page.host)", to: 2, in: domain)
    .throttled("host \(page.host)", to: 20, per: .seconds(1), in: domain)
  }

  @Test func fastHostsAreNotHeldUpByASlowOne() async {
    var generator = SeededGenerator(seed: 7)
    let pages = (0..<(isThorough ? 300 : 60)).map { index in
      // 15 % of the answers are “busy”.
      (host: index % 4, busyAnswers: (0..<4).prefix { _ in Int.random(in: 0..<100, using: &generator) < 15 }.count)
    }
    let crawl = GroupOperation(pages.map { download($0) }, maxConcurrentOperationCount: 6)
    crawl.clock = clock
    OperationQueue().addOperation(crawl)
    await clock.run(until: crawl)
    let result = watch.withLock { $0 }
    #expect(result.violations.isEmpty && crawl.errors.isEmpty)
    // No schedule is faster: the slow host uses its two slots all the time, and the others share four.
    let work = (0..<4).map { host in
      let answers = pages.filter { $0.host == host }.map { $0.busyAnswers + 1 }.reduce(0, +)
      return Self.duration(of: host) * answers
    }
    let (bestOfFast, bestOfSlow) = ((work[1] + work[2] + work[3]) / 4, work[0] / 2)
    let delays = Duration.milliseconds(300) * (pages.map { $0.busyAnswers }.max() ?? 0)
    #expect(result.ends[1...].max() ?? .zero <= bestOfFast * 1.25 + delays)
    #expect(result.ends[0] <= bestOfSlow * 1.25 + delays + .seconds(1))
  }

  private enum Form: CaseIterable { case group, queue, slotOfAGroup, slotOfAQueue, slotInsideKeys }

  /// Requests of 80 ms, and of 800 ms from the slow host.
  @Test(arguments: Form.allCases) private func hostsShareTheSlotsEvenly(form: Form) async throws {
    let (count, done) = (80, Journal<Int>())
    watch.withLock { $0.maximumRate = .max }
    let queue = OperationQueue.limited(to: 6)
    let group = GroupOperation("crawl", maxConcurrentOperationCount: 6).started()
    let request = { @Sendable [clock, watch] (host: Int) async throws in
      watch.withLock { $0.start(host, at: clock.now.offset) }
      try await clock.sleep(for: host == 0 ? .milliseconds(800) : .milliseconds(80))
      watch.withLock { $0.end(host, at: clock.now.offset) }
      done.write(host)
    }
    try await withThrowingTaskGroup(of: Void.self) { [domain] tasks in
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
