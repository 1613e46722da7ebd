import Foundation
import Operations
import OperationsTestSupport
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The page Networking. No test uses a network.
@Suite(.timeLimit(.minutes(5)))
struct NetworkingSnippets: Printing {
  struct Client: Sendable {
    let load: @Sendable (URL) async throws -> Data

    func data(from url: URL) async throws -> Data { try await load(url) }
  }

  struct BadStatus: Error {
    let code: Int

    static func isTemporary(_ error: any Error, attempt: Int) -> Bool {
      switch error {
      case let error as BadStatus: error.code == 429 || error.code >= 500
      case OperationError.Code.timedOut: true
      case URLError.timedOut, URLError.networkConnectionLost, URLError.cannotConnectToHost: true
      default: false
      }
    }
  }

  struct ServerBusy: Error { let retryAfter: Duration }

  func makePage(_ url: URL, from client: Client) -> RetryOperation<Data> {
    let backoff = Backoff.exponential(initial: .milliseconds(200), cap: .seconds(10), jitter: 0.5)
    let page = RetryOperation(attempts: 4, backoff: backoff, retryIf: BadStatus.isTemporary) { attempt in
      let request = TaskOperation { try await client.data(from: url) }
      request.timeout = .seconds(10)
      return request.named("attempt \(attempt)")
    }
    return page.named(url.absoluteString)
  }

  actor Pace {
    private var limit = 8.0

    func adapt(_ host: ExclusivityKey, in domain: ExclusivityDomain, after error: (any Error)?) {
      limit = error == nil ? limit + 0.1 : max(limit / 2, 1)
      domain.setLimit(Int(limit), for: host)
      if let busy = error as? ServerBusy { domain.pause(host, for: busy.retryAfter) }
    }
  }

  private let queue = OperationQueue()
  private let clock = ManualClock()
  private let url = URL(string: "https://a.example/page")!
  let printed = Journal<String>()
  private let loaded = Journal<Data>()

  private func show(_ data: Data) { loaded.write(data) }

  @Test func aRequestThatTimesOut() async throws {
    let client = Client { _ in
      await clock.waitForSleepers(1)
      clock.advance(by: .seconds(10))
      try await ManualClock().sleep(for: .seconds(1))  // until it is cancelled
      return Data()
    }

    let page = TaskOperation { try await client.data(from: url) }.named("page")
    page.timeout = .seconds(10)

    page.clock = clock

    do { show(try await queue.run(page)) } catch OperationError.Code.timedOut {
      print("The server did not answer in time.")
    }

    #expect(printed.entries == ["The server did not answer in time."] && loaded.count == 0)
  }

  @Test func whatIsTemporary() {
    let temporary: [any Error] = [
      BadStatus(code: 429), BadStatus(code: 503), OperationError(.timedOut, ""), URLError(.networkConnectionLost),
    ]
    let permanent: [any Error] = [BadStatus(code: 404), URLError(.badURL), CancellationError()]
    #expect(temporary.allSatisfy { BadStatus.isTemporary($0, attempt: 1) })
    #expect(!permanent.contains { BadStatus.isTemporary($0, attempt: 1) })
  }

  @Test func manyPages() async throws {
    let urls = ["https://a.example/1", "https://a.example/gone", "https://b.example/2"].compactMap { URL(string: $0) }
    let client = Client { url in
      if url.lastPathComponent == "gone" { throw BadStatus(code: 404) }
      return Data(url.lastPathComponent.utf8)
    }

    let domain = ExclusivityDomain()
    let crawl = GroupOperation("Downloads", maxConcurrentOperationCount: 6)
    for url in urls {
      let host = ExclusivityKey("host \(url.host() ?? "")")
      crawl.addOperation(
        makePage(url, from: client)
          .limited(host, to: 2, in: domain)
          .throttled(host, to: 4, per: .seconds(1), in: domain)
      )
    }

    crawl.clock = clock
    let pages = crawl.operations.compactMap { $0 as? RetryOperation<Data> }

    do { try await queue.run(crawl) } catch let error as AggregateError {
      for failure in error.failures { print(failure.path, failure.error) }
    }

    #expect(printed.entries == [#"["Downloads", "https://a.example/gone"] BadStatus(code: 404)"#])
    #expect(pages.map { try? $0.result?.get() } == [Data("1".utf8), nil, Data("2".utf8)])
  }

  @Test func aLimitThatAdapts() async {
    let (pace, domain, host) = (Pace(), ExclusivityDomain(), ExclusivityKey("host"))
    for _ in 0..<2 { await pace.adapt(host, in: domain, after: ServerBusy(retryAfter: .zero)) }
    for _ in 0..<11 { await pace.adapt(host, in: domain, after: nil) }
    let requests = (0..<4).map { _ in Held().shared(host, in: domain) }
    queue.addOperations(requests)
    for operation in requests[..<3] { await operation.begun.opened() }
    #expect(domain.waiting(for: host).count == 1)
    for operation in requests { operation.gate.open() }
    await queue.finished()
  }

  @Test func aTimeoutAndARetry() async throws {
    let requests = Journal<URL>()
    let client = Client { url in
      requests.write(url)
      if requests.count == 1 { try await ManualClock().sleep(for: .seconds(1)) }
      return Data("text".utf8)
    }
    let page = makePage(url, from: client)
    page.clock = clock
    queue.addOperation(page)
    await requests.reaches(1)
    await clock.waitForSleepers(1)  // the timeout of the first attempt
    clock.advance(by: .seconds(10))
    await clock.waitForSleepers(1)  // the delay before the second attempt
    clock.advance(by: .milliseconds(200))
    #expect(try await page.value == Data("text".utf8))
    #expect(requests.count == 2 && OperationError.Code.timedOut ~= page.attemptErrors[0])
  }
}
