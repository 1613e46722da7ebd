import Foundation
import Operations
import Synchronization

/// Requests to four hosts, at most six at once and two per host, compared with an actor that always starts the first
/// request that fits.
///
/// One host takes ten times as long to answer as the others. Its requests outlast theirs, so that it always has more
/// requests than slots while the other hosts are busy.
enum CrawlBenchmarks {
  static let all: [Benchmark] = {
    let actor = Form("actor with continuations") { crawl in
      let limits = Limits()
      await crawl.tasks { host in
        await limits.enter(host)
        await crawl.request(host)
        await limits.leave(host)
      }
    }
    let group = Form("limited, GroupOperation") { crawl in
      let group = GroupOperation(crawl.operations(), maxConcurrentOperationCount: 6)
      crawl.queue.addOperation(group)
      await group.finished()
    }
    let queue = Form("limited, OperationQueue") { crawl in
      let operations = crawl.operations()
      for operation in operations { crawl.queue.addOperation(operation) }
      for operation in operations { await operation.finished() }
    }
    let slots = Form("withSlot(holding: .limited)") { crawl in
      await crawl.tasks { host in
        try await crawl.queue.withSlot(holding: crawl.limit(host), in: crawl.domain) { await crawl.request(host) }
      }
    }
    let keys = Form("withKeys(.limited) around withSlot") { crawl in
      await crawl.tasks { host in
        try await withKeys(crawl.limit(host), in: crawl.domain) {
          try await crawl.queue.withSlot { await crawl.request(host) }
        }
      }
    }
    let unit = "crawl of \(hosts.count) requests"
    let fast = "\(unit), until the fast hosts are done"
    let spread = "\(unit), until the slowest or the fastest of the fast hosts is done"
    let slowest: @Sendable ([Duration]) -> Duration? = { $0.dropLast().max() }
    let fastest: @Sendable ([Duration]) -> Duration? = { $0.dropLast().min() }
    return [("", group), ("-queue", queue), ("-slots", slots), ("-keys", keys)].flatMap { suffix, form -> [Benchmark] in
      [
        Benchmark("crawl\(suffix)", of: unit, form.time { $0.max() }, over: actor.time { $0.max() }, .atMost(1.05)),
        Benchmark("crawl-fast\(suffix)", of: fast, form.time(slowest), over: actor.time(slowest), .atMost(1.05)),
        Benchmark("crawl-spread\(suffix)", of: spread, form.time(slowest), over: form.time(fastest), .atMost(1.3)),
      ]
    }
  }()

  /// The hosts of the requests in order. The slow host is 3.
  private static let hosts = (0..<160).filter { $0 % 4 < 3 || $0 < 48 }.map { $0 % 4 }

  /// A way to write the crawl. Its rows read the same runs, because a run takes five seconds.
  private final class Form: Sendable {
    private let name: String
    private let run: @Sendable (Crawl) async -> Void
    private let ends = Mutex<[Int: [Duration]]>([:])

    init(_ name: String, _ run: @escaping @Sendable (Crawl) async -> Void) { (self.name, self.run) = (name, run) }

    /// Returns the workload whose time `choose` returns from the times of the last answers of all hosts.
    func time(_ choose: @escaping @Sendable ([Duration]) -> Duration?) -> Workload {
      Workload(name: name) { [self] round in
        let ends = ends.withLock { ends in
          if let ends = ends[round] { return ends }
          let crawl = Crawl()
          startTasks(1) { [run] _ in await run(crawl) }.wait()
          ends[round] = crawl.ends
          return crawl.ends
        }
        return (choose(ends) ?? .zero) / .nanoseconds(1)
      }
    }
  }

  private final class Crawl: Sendable {
    let domain = ExclusivityDomain()
    let queue = OperationQueue.limited(to: 6)
    private let begin = ContinuousClock.now
    private let times = Mutex([Duration](repeating: .zero, count: 4))

    /// The time of the last answer of each host.
    var ends: [Duration] { times.withLock(\.self) }

    func request(_ host: Int) async {
      try? await Task.sleep(for: .milliseconds(host == 3 ? 800 : 80))
      times.withLock { $0[host] = .now - begin }
    }

    func limit(_ host: Int) -> ExclusivityClaim { .limited("host \(host)", to: 2) }

    func operations() -> [AsyncOperation] {
      hosts.map { host in TaskOperation { [self] in await request(host) }.limited("host \(host)", to: 2, in: domain) }
    }

    func tasks(_ body: @escaping @Sendable (_ host: Int) async throws -> Void) async {
      await withTaskGroup(of: Void.self) { group in
        for host in hosts { group.addTask { try? await body(host) } }
      }
    }
  }

  private actor Limits {
    private var executing = [0, 0, 0, 0]
    private var waiting: [(host: Int, continuation: CheckedContinuation<Void, Never>)] = []

    private func admits(_ host: Int) -> Bool { executing.reduce(0, +) < 6 && executing[host] < 2 }

    func enter(_ host: Int) async {
      if admits(host) {
        executing[host] += 1
      } else {
        await withCheckedContinuation { waiting.append((host, $0)) }
      }
    }

    func leave(_ host: Int) {
      executing[host] -= 1
      while let index = waiting.firstIndex(where: { admits($0.host) }) {
        let next = waiting.remove(at: index)
        executing[next.host] += 1
        next.continuation.resume()
      }
    }
  }
}
