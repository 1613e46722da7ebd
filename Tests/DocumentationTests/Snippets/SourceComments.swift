import Foundation
import Operations
import OperationsTestSupport
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The code of the comments in Sources/Operations, except in Diagnostics, Exclusivity and Scheduling.
@Suite(.timeLimit(.minutes(5)))
struct SourceComments {
  private let queue = OperationQueue()
  private let printed = Journal<String>()
  private let url = URL(filePath: "/home")
  private let session = Session()

  private func print(_ items: String...) { printed.write(items.joined(separator: " ")) }

  private func retryLater() { print("later") }

  // MARK: Dependencies, errors and queues

  private final class Upload: AsyncOperation, @unchecked Sendable {
    init(_ page: Int) {}
  }

  @Test func aChain() async {
    let pages = [1, 2, 3]
    queue.addOperations(chain(pages.map { Upload($0) }))
    await queue.finished()
  }

  @Test func catchingACode() async throws {
    let operation = AsyncBlockOperation { _ in }
    operation.timeout = .milliseconds(1)
    do {
      try await queue.run(operation)
    } catch OperationError.Code.timedOut {
      retryLater()
    }
    #expect(printed.entries == ["later"])
  }

  private struct Session: Sendable {
    func data(from url: URL) async throws -> (Data, Int) { (Data(url.path.utf8), 200) }
    func upload(_ photo: String) async throws -> Int { photo.count }
  }

  private struct Index: Sendable {
    let pages = [URL(filePath: "/first"), URL(filePath: "/second")]
    init(of folder: URL) throws {}
  }

  @Test func closures() async throws {
    let (folder, photo) = (URL(filePath: "/"), "photo")
    let page = try await queue.run { try await session.data(from: url).0 }
    let index = queue.addTask("index") { try Index(of: folder) }
    queue.addTask("upload") { try await session.upload(photo) }
    #expect(try await index.value.pages.count == 2 && page == Data("/home".utf8))
    await queue.finished()
  }

  // MARK: Operations

  enum Subclasses {
    final class Download: AsyncOperation, @unchecked Sendable {
      private let url: URL

      init(_ url: URL) { self.url = url }

      override func execute() {
        URLSession.shared.dataTask(with: url) { [self] _, _, error in
          if let error { return finish(with: error) }
          finish()
        }.resume()
      }
    }

    final class Alert: MainOperation, @unchecked Sendable {
      private let text: String

      init(_ text: String) { self.text = text }

      override func executeOnMain() {
        Screen.shared.show(text) { [self] in finish() }
      }
    }

    /// Work that counts its own units.
    final class Storing: AsyncOperation, @unchecked Sendable {
      let pages: [String]

      init(_ pages: [String]) { self.pages = pages }

      private func store(_ page: String) {}

      override func execute() {
        progress.totalUnitCount = Int64(pages.count)
        for page in pages {
          store(page)
          progress.completedUnitCount += 1
        }
        finish()
      }
    }
  }

  @MainActor
  final class Screen {
    static let shared = Screen()
    let shown = Journal<String>()

    func show(_ text: String, _ completion: @escaping @MainActor () -> Void) {
      shown.write(text)
      completion()
    }

    func show(_ result: Result<String, any Error>) { show((try? result.get()) ?? "an error") {} }
  }

  @Test func subclasses() async throws {
    let missing = FileManager.default.temporaryDirectory.appending(path: "there is no such file")
    await #expect(throws: (any Error).self) { try await queue.run(Subclasses.Download(missing)) }
    try await queue.run(Subclasses.Alert("Low ink"))
    #expect(await Screen.shared.shown.entries.contains("Low ink"))
    let storing = Subclasses.Storing(["a", "b", "c"])
    let progress = storing.progress
    try await queue.run(storing)
    #expect(progress.totalUnitCount == 3 && progress.isFinished)
  }

  @Test func anObserver() async throws {
    let operation = AsyncOperation().named("page 3")
    operation.addObserver(OperationObserver(didFinish: { print($0.name ?? "?", "is done") }))
    try await queue.run(operation)
    #expect(printed.entries == ["page 3 is done"])
  }

  private struct Client: Sendable {
    let error: CocoaError?

    func upload(_ file: String, _ completion: @escaping @Sendable ((any Error)?) -> Void) {
      DispatchQueue.global().async { completion(error) }
    }
  }

  @Test(arguments: [nil, CocoaError(.fileNoSuchFile)])
  func aBlock(failing error: CocoaError?) async {
    let (client, file) = (Client(error: error), "photo")
    let upload = AsyncBlockOperation { operation in
      client.upload(file) { error in
        if let error { operation.finish(with: error) } else { operation.finish() }
      }
    }
    queue.addOperation(upload)
    await upload.finished()
    #expect(upload.errors as? [CocoaError] == [error].compactMap(\.self))
  }

  // MARK: Values

  private struct Page: Codable, Equatable { let title: String }

  private final class Store: AsyncOperation, InputOperation, @unchecked Sendable {
    var input: Page?
  }

  private final class File: Operation, @unchecked Sendable {
    var file = ""
  }

  @Test func anAdapter() async {
    let (download, unpack) = (File(), File())
    download.file = "archive.zip"
    let adapter = AdapterOperation(from: download, to: unpack) { download, unpack in unpack.file = download.file }
    queue.addOperations([download, adapter, unpack])
    await unpack.finished()
    #expect(unpack.file == "archive.zip")
  }

  @Test func aTransformation() async throws {
    let (download, store) = (ResultOperation { Data(#"{"title": "Home"}"#.utf8) }, Store())
    let parse = TransformOperation { (data: Data) in try JSONDecoder().decode(Page.self, from: data) }
    download.pass(to: parse).pass(to: store)
    try await queue.run(graphEndingIn: store)
    #expect(store.input == Page(title: "Home"))
  }

  @Test func values() async throws {
    let url = URL(filePath: #filePath)
    let page = TaskOperation { try await session.data(from: url).0 }
    #expect(try await queue.run(page) == Data(url.path.utf8))

    let (loadUser, loadPosts) = (ResultOperation { "user" }, TaskOperation { ["post"] })
    let loadFriends = ResultOperation { 3 }
    let (user, posts, friends) = try await queue.run(graphEndingIn: zip(loadUser, loadPosts, loadFriends))
    #expect(user == "user" && posts == ["post"] && friends == 3)

    let download = ResultOperation { "to be or not to be" }
    let words = try await queue.run(graphEndingIn: download.map { $0.split(separator: " ").count })
    #expect(words == 6)

    let length = try await queue.run(ResultOperation { try Data(contentsOf: url).count })
    #expect(length > 0)
  }

  @Test func onFinishOnMain() async throws {
    let (loadProfile, screen) = (ResultOperation { "profile" }, Screen())
    loadProfile.onFinishOnMain { result in screen.show(result) }
    _ = try await queue.run(loadProfile)
    await screen.shown.reaches(1)
  }

  // MARK: Groups

  private struct ServerBusy: Error { let retryAfter: Duration }

  private final class Download: ResultOperation<String>, @unchecked Sendable {
    init(_ url: URL) { super.init { url.lastPathComponent } }
  }

  private final class CleanUp: AsyncOperation, @unchecked Sendable {}

  @Test func waitForRoom() async {
    let urls = Array(repeating: url, count: 300)
    let downloads = GroupOperation()
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
    let index = ResultOperation { try Index(of: url) }
    let firstPage = try await queue.run(graphEndingIn: index.flatMap { Download($0.pages[0]) })
    #expect(firstPage == "first")
  }

  @Test func retries() async throws {
    let page = RetryOperation(attempts: 5, backoff: .exponential(initial: .milliseconds(100), cap: .seconds(10))) { _ in
      Download(url)
    }
    #expect(try await queue.run(page) == "home")

    let (login, upload) = (AsyncOperation(), AsyncOperation())
    let sync = RetryOperation(attempts: 3) { _ in
      GroupOperation("Sync") { login ==> upload }
    }
    try await queue.run(sync)
    #expect(upload.isSuccessful)
  }

  @Test func retryWhenTheServerSays() async throws {
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

  @Test func aGroup() async throws {
    let (download, parse, store) = (AsyncOperation(), AsyncOperation(), AsyncOperation())
    let importer = GroupOperation("Import") { download ==> parse ==> store }
    try await queue.run(importer)
    #expect(store.isSuccessful)
  }

  @Test(arguments: [false, true])
  func theBuilder(cleansUp: Bool) async {
    let (download, parse, store) = (AsyncOperation(), AsyncOperation(), AsyncOperation())
    let pages = [AsyncOperation(), AsyncOperation()]
    func fetch(_ page: Operation) -> Operation { page }
    let importer = GroupOperation("Import") {
      download ==> parse ==> store  // takes in all three
      for page in pages { fetch(page) }
      if cleansUp { store ==> CleanUp() }
    }
    #expect(importer.operations.count == (cleansUp ? 6 : 5))

    let (group, bar) = (importer, GroupsAndErrors.Bar())
    queue.addOperation(group)
    for await fraction in group.progressUpdates { bar.show(fraction) }
    #expect(bar.shown.entries.last == 1)
  }
}
