import Foundation
import Operations
import OperationsTestSupport
import Testing

/// The page ChoosingAnOperation.
@Suite(.timeLimit(.minutes(5)))
struct ChoosingAnOperation: Printing {
  private let queue = OperationQueue()
  let printed = Journal<String>()

  // MARK: A batch tool

  @Test func aBatchTool() async throws {
    let written = Journal<String>()
    let fractions = Journal<Double>()
    let photos = ["/photos/a.png", "/photos/missing", "/photos/b.png"].map { URL(filePath: $0) }
    @Sendable func writeThumbnail(of photo: URL) throws {
      if photo.lastPathComponent == "missing" { throw NoSuchPage(page: "missing") }
      written.write(photo.lastPathComponent)
    }
    @Sendable func show(_ fraction: Double) { fractions.write(fraction) }

    let batch = GroupOperation("Thumbnails") {
      for photo in photos { ResultOperation { try writeThumbnail(of: photo) }.named(photo.path) }
    }
    batch.maxConcurrentOperationCount = ProcessInfo.processInfo.activeProcessorCount
    let updates = batch.progressUpdates
    Task { for await fraction in updates { show(fraction) } }
    do {
      try await queue.run(batch)
    } catch is CancellationError {
      print("stopped")
    } catch let error as AggregateError {
      for failure in error.failures { print(failure) }
    }

    #expect(Set(written.entries) == ["a.png", "b.png"])
    #expect(printed.entries == ["Thumbnails › /photos/missing: there is no page “missing”"])
    await fractions.reaches(1)
  }

  // MARK: A job server

  private struct Job: Sendable {
    let name: String
    let account: Int
    let run: @Sendable () async throws -> Void
  }

  private static let logged = Journal<String>()
  private static func log(_ text: String) { logged.write(text) }

  final class Jobs: GroupOperation, @unchecked Sendable {
    override func operation(_ job: Operation, didFinishWith errors: [any Error]) -> [any Error] {
      for error in errors { log("\(job.name ?? ""): \(error)") }
      return []  // an open group keeps the errors that this method returns
    }
  }

  @Test func aJobServer() async throws {
    @Sendable func isTemporary(_ error: any Error, attempt: Int) -> Bool { error is ServerBusy }

    let jobs = Jobs().named("Jobs")
    jobs.staysOpen = true
    jobs.maxConcurrentOperationCount = 8
    queue.addOperation(jobs)

    func submit(_ job: Job) async {
      let backoff = Backoff.exponential(initial: .seconds(1), cap: .seconds(60))
      let attempts = RetryOperation(attempts: 3, backoff: backoff, retryIf: isTemporary) { _ in
        let attempt = TaskOperation { try await job.run() }.named("attempt")
        attempt.timeout = .seconds(30)
        return attempt
      }
      await jobs.addOperation(attempts.named(job.name).exclusive("account \(job.account)"), whenBelow: 1_000)
    }

    let clock = ManualClock()
    jobs.clock = clock
    let (done, firstEnds) = (Journal<String>(), Gate())
    await submit(
      Job(name: "first", account: 11) {
        await firstEnds.opened()
        done.write("first")
      }
    )
    await submit(Job(name: "second", account: 11) { done.write("second") })
    await submit(Job(name: "third", account: 12) { throw NoSuchPage(page: "third") })
    await Self.logged.reaches(1)
    firstEnds.open()
    jobs.staysOpen = false
    try await jobs.completed()
    #expect(done.entries == ["first", "second"])
    #expect(Self.logged.entries == ["third: there is no page “third”"] && jobs.errors.isEmpty)
  }

  // MARK: A sync client

  struct Article: Sendable {
    let text: String

    init(_ text: String) throws {
      if text.isEmpty { throw NoSuchPage(page: "empty") }
      self.text = text
    }
  }

  actor Library: ScheduledActor {
    nonisolated let scheduler = SerialScheduler(name: "library")
    private(set) var articles: [Article] = []

    func insert(_ article: Article) { articles.append(article) }
  }

  /// Loads the first page last.
  private struct Client: Sendable {
    let lastIsLoaded = Gate()

    func load(_ page: String) async throws -> String {
      if page == "first" { await lastIsLoaded.opened() }
      if page == "last" { lastIsLoaded.open() }
      return page == "empty" ? "" : page
    }
  }

  @Test func aSyncClient() async throws {
    let (client, library) = (Client(), Library())
    let pages = ["first", "empty", "last"]

    do {
      let stores = pages.map { page in
        TaskOperation { try await client.load(page) }.named(page)
          .map { text in try Article(text) }.named("parse \(page)")
          .map { article in await library.insert(article) }.named("store \(page)")
      }
      try await queue.run(GroupOperation("Sync") { chain(stores) })
      Issue.record("an article has no text")
    } catch let error as AggregateError {
      #expect(error.primary.path == ["Sync", "parse empty"])
    }

    #expect(await library.articles.map(\.text) == ["first", "last"])
  }
}
