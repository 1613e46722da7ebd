import Foundation
import Operations
import OperationsTestSupport
import Testing

/// The code of the article “From tasks”, and of the comments on keys, slots and results for tasks.
@Suite(.timeLimit(.minutes(5)))
struct FromTasks: Printing {
  private typealias Save = Load
  private typealias Download = Load

  private let queue = OperationQueue()
  private let url = "home"
  private let urls = ["home", "news"]
  private let document = "letter"
  private let photo = "photo"
  let printed = Journal<String>()

  private actor Store {
    private(set) var documents: [String] = []

    func load() async throws -> [String] { documents }
    func save(_ document: String) async throws { documents.append(document) }
    func save(_ documents: [String]) async throws { self.documents = documents }
  }

  @Sendable private func upload(_ photo: String) async throws { printed.write(photo) }

  @Sendable private func fetch(_ url: String) async throws -> String { "page of \(url)" }

  private func show(_ page: String, for url: String) { print(url) }

  // MARK: Keys, slots and retries

  @Test func keysAndSlots() async throws {
    let store = Store()
    try await withKeys(.exclusive("database"), .limited("disk", to: 2)) { try await store.save(document) }
    try await queue.withSlot("upload", holding: .limited("server", to: 2)) { try await upload(photo) }
    try await withKeys(.exclusive("database")) {
      let old = try await store.load()
      try await store.save(old + [document])
    }
    #expect(await store.documents == ["letter", "letter"] && printed.entries == ["photo"])
  }

  @Test func limitAndRate() async throws {
    queue.maxConcurrentOperationCount = 4
    try await queue.withSlot("upload") { try await upload(photo) }
    try await withKeys(.throttled("api", to: 10, per: .seconds(1))) { try await upload(photo) }
    #expect(printed.count == 2)
  }

  actor Limit {
    private var free = 4
    private var waiters: [CheckedContinuation<Void, Never>] = []

    func enter() async {
      if free > 0 { free -= 1 } else { await withCheckedContinuation { waiters.append($0) } }
    }

    func leave() {
      if waiters.isEmpty { free += 1 } else { waiters.removeFirst().resume() }
    }
  }

  @Test func aLimitWithoutThePackage() async throws {
    let limit = Limit()
    await limit.enter()
    try await upload(photo)
    await limit.leave()
    #expect(printed.count == 1)
  }

  @Test func aQueueOfOnesOwn() async {
    let saves = GroupOperation("saves", maxConcurrentOperationCount: 1).started()
    saves.addOperation(Save(document))
    await saves.waitForRoom(below: 1)
  }

  @Test func retry() async throws {
    let page = RetryOperation(attempts: 3, backoff: .constant(.seconds(1))) { _ in try await fetch(url) }
    let text = try await queue.run(page)
    #expect(text == "page of home")
  }

  // MARK: Several results

  @Test func results() async {
    do {
      let pages = queue.results(of: urls, atMost: 6) { Download($0) }
      for await (url, result) in pages {
        if case .success(let page) = result { show(page, for: url) }
      }
    }
    do {
      let pages = queue.results(of: urls, atMost: 6) { try await fetch($0) }
      for await (url, result) in pages {
        if case .success(let page) = result { show(page, for: url) }
      }
    }
    #expect(printed.entries.sorted() == ["home", "home", "news", "news"])
  }

  @Test func firstOfSeveral() async throws {
    let mirrors = ["home"]
    do {
      let page = try await queue.first(of: mirrors.map { Download($0) }, staggered: .milliseconds(250))
      #expect(!page.isEmpty)
    }
    let downloads = mirrors.map { mirror in TaskOperation { try await fetch(mirror) } }
    let page = try await queue.first(of: downloads, staggered: .milliseconds(250))
    #expect(page == "page of home")
  }
}
