import Foundation
import Operations

/// Requests to four hosts, one of them ten times as slow as the others, with 15 % of the answers “busy”: at most six at
/// once, two per host, and a delay after each “busy”. Compared with the same written with an actor and a task group.
enum CrawlBenchmarks {
  private static let count = 300
  private static let backoff = Duration.milliseconds(6)

  static let all: [Benchmark] = [
    Benchmark("crawl", of: "crawl of \(count) requests", operations(), over: tasks(), .atMost(1.05)),
    Benchmark(
      "crawl-fast",
      of: "crawl of \(count) requests, until the fast hosts are done",
      operations(onlyFast: true),
      over: tasks(onlyFast: true),
      .atMost(1.05)
    ),
  ]

  private struct Busy: Error {}

  private struct Request: Sendable {
    let host: Int
    /// The number of answers before the one that counts.
    let busyAnswers: Int

    var isFast: Bool { host > 0 }

    func answer(attempt: Int) async throws {
      try await Task.sleep(for: .milliseconds(isFast ? 2 : 20))
      if attempt <= busyAnswers { throw Busy() }
    }
  }

  /// Every seventh answer is “busy”.
  private static let requests = (0..<count).map { Request(host: $0 % 4, busyAnswers: $0 % 7 == 3 ? 1 : 0) }

  private static func operations(onlyFast: Bool = false) -> Workload {
    .awaiting("RetryOperation, limited, GroupOperation", units: 1) {
      let domain = ExclusivityDomain()
      let pages = requests.map { request in
        RetryOperation(attempts: 3, backoff: .constant(backoff)) { attempt in
          TaskOperation { try await request.answer(attempt: attempt) }
        }
        .limited("host \(request.host)", to: 2, in: domain)
      }
      let crawl = GroupOperation(pages)
      crawl.maxConcurrentOperationCount = 6
      OperationQueue().addOperation(crawl)
      if onlyFast {
        for (page, request) in zip(pages, requests) where request.isFast { await page.finished() }
        crawl.cancel()
      }
      await crawl.finished()
    }
  }

  private static func tasks(onlyFast: Bool = false) -> Workload {
    .awaiting("actor with continuations, task group", units: 1) {
      let limits = Limits()
      await withTaskGroup(of: Bool.self) { group in
        for request in requests {
          group.addTask {
            var attempt = 1
            while !Task.isCancelled {
              await limits.enter(request.host)
              let isDone = (try? await request.answer(attempt: attempt)) != nil
              await limits.leave(request.host)
              if isDone { break }
              attempt += 1
              try? await Task.sleep(for: backoff)
            }
            return request.isFast
          }
        }
        var rest = requests.count(where: \.isFast)
        for await isFast in group {
          if isFast { rest -= 1 }
          if onlyFast, rest == 0 { group.cancelAll() }
        }
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
