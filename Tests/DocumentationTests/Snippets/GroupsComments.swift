import Foundation
import Operations
import OperationsTestSupport
import Testing

private struct ServerBusy: Error { let retryAfter: Duration }

private final class Download: ResultOperation<String>, @unchecked Sendable {
  private let url: URL

  init(_ url: URL) {
    self.url = url
    super.init()
  }

  override func execute() { finish(returning: url.lastPathComponent) }
}

private final class CleanUp: AsyncOperation, @unchecked Sendable {}

private struct Index: Sendable { let pages: [URL] }

private final class Importer: GroupOperation, @unchecked Sendable {
  override init(_ name: String? = nil, @OperationBuilder _ operations: () -> [Operation]) {
    super.init(name, operations)
  }
}

private struct Bar: Sendable {
  let shown = Journal<Double>()
  func show(_ fraction: Double) { shown.write(fraction) }
}

/// The code of the comments in Sources/Operations/Groups.
@Suite(.timeLimit(.minutes(5)))
struct GroupsComments {
  private let queue = OperationQueue()
  private let url = URL(filePath: "/home")

  @Test func waitForRoom() async {
    let urls = Array(repeating: url, count: 300)
    let downloads = GroupOperation().named("Downloads")
    downloads.staysOpen = true
    queue.addOperation(downloads)
    for url in urls {
      await downloads.waitForRoom(below: 100)
      downloads.addOperation(Download(url))
    }
    downloads.finish()
    await downloads.finished()
    #expect(downloads.isSuccessful)
  }

  @Test func flatMap() async throws {
    let index = ResultOperation { Index(pages: [URL(filePath: "/first"), URL(filePath: "/second")]) }
    let firstPage = try await queue.run(graphEndingIn: index.flatMap { Download($0.pages[0]) })
    #expect(firstPage == "first")
  }

  @Test func retry() async throws {
    let url = url
    let page = RetryOperation(attempts: 5, backoff: .exponential(initial: .milliseconds(100), cap: .seconds(10))) { _ in
      Download(url)
    }
    #expect(try await queue.run(page) == "home")
  }

  @Test func retryOfAGroup() async throws {
    let (login, upload) = (AsyncOperation(), AsyncOperation())
    let sync = RetryOperation(attempts: 3) { _ in
      GroupOperation("Sync") { login ==> upload }
    }
    try await queue.run(sync)
    #expect(upload.isSuccessful)
  }

  private struct Order: Sendable { let isReady = false }

  private final class CheckStatus: AsyncOperation, @unchecked Sendable {
    init(of order: Order) {}
  }

  @Test func repetition() {
    let order = Order()
    let poll = RepeatOperation(pausing: .constant(.seconds(5))) { iteration in
      iteration <= 12 && !order.isReady ? CheckStatus(of: order) : nil
    }
    #expect(poll.state == .pending)
  }

  @Test func retryWhenTheServerSays() async throws {
    let url = url
    // swift-format-ignore: OnlyOneTrailingClosureArgument
    let page = RetryOperation(
      attempts: 5,
      retryIf: { error, _ in
        guard let busy = error as? ServerBusy else { return .stop }
        return .retry(after: busy.retryAfter)
      }
    ) { _ in Download(url) }
    #expect(try await queue.run(page) == "home")
  }

  @Test(arguments: [false, true])
  func theBuilder(cleansUp: Bool) {
    let (download, parse, store) = (AsyncOperation(), AsyncOperation(), AsyncOperation())
    let pages = [AsyncOperation(), AsyncOperation()]
    func fetch(_ page: Operation) -> Operation { page }
    let importer = GroupOperation("Import") {
      download ==> parse ==> store  // takes in all three
      for page in pages { fetch(page) }
      if cleansUp { store ==> CleanUp() }
    }
    #expect(importer.operations.count == (cleansUp ? 6 : 5))
  }

  @Test func aGroup() async throws {
    let (download, parse, store) = (AsyncOperation(), AsyncOperation(), AsyncOperation())
    let importer = GroupOperation("Import") { download ==> parse ==> store }
    try await queue.run(importer)
    #expect(store.isSuccessful)
  }

  @Test func aSubclass() async throws {
    let member = AsyncOperation()
    try await queue.run(Importer("Import") { member })
    #expect(member.isSuccessful)
  }

  @Test func progress() async throws {
    let (group, bar) = (GroupOperation { AsyncOperation() }, Bar())
    queue.addOperation(group)
    for await fraction in group.progressUpdates { bar.show(fraction) }
    #expect(bar.shown.entries.last == 1)
  }
}
