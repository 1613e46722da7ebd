import Foundation
import Operations
import OperationsTestSupport
import Testing

/// The code of the article “From tasks”, and of the comments on keys, slots and results for tasks.
@Suite(.timeLimit(.minutes(5)))
struct FromTasks: Printing {
  private typealias Save = Load

  private let queue = OperationQueue()
  let printed = Journal<String>()

  private struct Store: Sendable {
    let printed: Journal<String>
    func save(_ document: String) async throws { printed.write(document) }
  }

  private func upload(_ photo: String) async throws { printed.write(photo) }

  @Test func keysSlotsAndAQueueOfOnesOwn() async throws {
    let (store, document, photo) = (Store(printed: printed), "letter", "photo")
    try await withKeys(.exclusive("database"), .limited("disk", to: 2)) {
      try await store.save(document)
    }
    try await queue.withSlot("upload", holding: .limited("server", to: 2)) {
      try await upload(photo)
    }
    #expect(printed.entries == ["letter", "photo"])
    let saves = GroupOperation("saves", maxConcurrentOperationCount: 1).started()
    saves.addOperation(Save(document))
    await saves.waitForRoom(below: 1)
  }

  private func fetch(_ url: String) async throws -> String { "page of \(url)" }

  private typealias Download = Load

  private func show<Value>(_ page: Result<Value, any Error>, for url: String) { print(url) }

  @Test func results() async {
    let urls = ["home", "news"]
    do {
      let pages = queue.results(of: urls, atMost: 6) { Download($0) }
      for await (url, page) in pages { show(page, for: url) }
    }
    do {
      let pages = queue.results(of: urls, atMost: 6) { try await fetch($0) }
      for await (url, page) in pages { show(page, for: url) }
    }
    #expect(printed.entries.sorted() == ["home", "home", "news", "news"])
  }

  @Test func firstOfSeveral() async throws {
    let mirrors = ["home"]
    let page = try await queue.first(of: mirrors.map { Download($0) }, staggered: .milliseconds(250))
    _ = page
  }

  @Test func retry() async throws {
    let url = "home"
    let page = RetryOperation(attempts: 3, backoff: .constant(.seconds(1))) { _ in try await fetch(url) }
    #expect(try await queue.run(page) == "page of home")
  }
}
