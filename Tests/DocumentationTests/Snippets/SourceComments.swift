import Foundation
import Operations
import OperationsTestSupport
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The code of the comments in Sources/Operations, except in Diagnostics, Exclusivity and Scheduling.
@Suite(.timeLimit(.minutes(5)))
struct SourceComments: Printing {
  private typealias Download = Load

  private let queue = OperationQueue()
  let printed = Journal<String>()
  private let url = "home"
  private let session = Session()

  private struct Session: Sendable {
    let uploaded = Journal<String>()

    func data(from url: String) async throws -> (Data, Int) { (Data(url.utf8), 200) }
    func upload(_ photo: String) async throws { uploaded.write(photo) }
  }

  private struct Index: Sendable {
    let pages = ["first", "second"]
    init(of folder: String) throws {}
  }

  @Sendable private func log(_ error: any Error, from operation: AsyncOperation) { printed.write("\(error)") }

  @Sendable private func check(_ line: String) async throws -> Int { line.count }

  @Test func closures() async throws {
    let (folder, photo, file) = ("folder", "photo", URL(filePath: #filePath))
    let index = queue.addTask("index") { try Index(of: folder) }

    let page = try await queue.run { try await session.data(from: url).0 }
    let words = try await queue.run { try String(contentsOf: file, encoding: .utf8).split(separator: " ").count }
    queue.addTask("upload") { try await session.upload(photo) }

    #expect(words > 100)
    queue.addObserver(OperationObserver(didFinish: { if let error = $0.errors.first { log(error, from: $0) } }))
    let lines = AsyncStream<String> { $0.finish() }
    let reports = queue.results(of: lines, atMost: 4, ordered: true) { try await check($0) }
    for try await (line, report) in reports { print(line, report) }
    #expect(try await index.value.pages.count == 2 && page == Data("home".utf8))
    await queue.finished()
    #expect(session.uploaded.entries == ["photo"])
  }

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

      override func executeOnMain() { Screen.shared.show(text) { [self] in finish() } }
    }

    /// Work that counts its own units.
    final class Storing: AsyncOperation, @unchecked Sendable {
      override func execute() {
        func store(_ page: String) {}
        let pages = ["a", "b", "c"]
        progress.totalUnitCount = Int64(pages.count)
        for page in pages {
          store(page)
          progress.completedUnitCount += 1
        }
        finish()
      }
    }
  }

  @Test func subclasses() async throws {
    let missing = FileManager.default.temporaryDirectory.appending(path: "there is no such file")
    await #expect(throws: (any Error).self) { try await queue.run(Subclasses.Download(missing)) }
    try await queue.run(Subclasses.Alert("Low ink"))
    #expect(await Screen.shared.shown.entries.contains("Low ink"))
    let operation = Subclasses.Storing().named("page 3")
    let progress = operation.progress
    operation.addObserver(OperationObserver(didFinish: { print($0.name ?? "?", "is done") }))
    let screen = await Screen.shared
    operation.addObserver(.onMain(didFinish: { screen.show($0.errors) }))
    try await queue.run(operation)
    await screen.shown.reaches(2)
    #expect(screen.shown.entries.contains("0 errors"))
    #expect(progress.totalUnitCount == 3 && progress.isFinished)
    #expect(printed.entries == ["page 3 is done"])
  }

  private struct Client: Sendable {
    func upload(_ file: String, _ completion: @Sendable ((any Error)?) -> Void) { completion(NoSuchPage(page: file)) }
  }

  @Test func aBlock() async {
    let (client, file) = (Client(), "photo")
    let upload = AsyncBlockOperation { operation in
      client.upload(file) { error in if let error { operation.finish(with: error) } else { operation.finish() } }
    }
    await #expect(throws: NoSuchPage.self) { try await queue.run(upload) }
  }

  @Test func values() async throws {
    let page = TaskOperation { try await session.data(from: url).0 }
    #expect(try await queue.run(page) == Data("home".utf8))

    let (loadUser, loadPosts) = (ResultOperation { "user" }, TaskOperation { ["post"] })
    let loadFriends = ResultOperation { 3 }
    let (user, posts, friends) = try await queue.run(zip(loadUser, loadPosts, loadFriends))
    #expect(user == "user" && posts == ["post"] && friends == 3)

    let download = ResultOperation { "to be or not to be" }
    let words = try await queue.run(download.map { $0.split(separator: " ").count })
    #expect(words == 6)

    do {
      let url = URL(filePath: #filePath)
      let length = try await queue.run(ResultOperation { try Data(contentsOf: url).count })
      #expect(length > 0)
    }

    let (loadProfile, screen) = (Load("profile"), Screen())
    loadProfile.onFinishOnMain { result in screen.show(result) }
    queue.addOperation(loadProfile)
    await screen.shown.reaches(1)
  }

  @Test func groups() async throws {
    let index = ResultOperation { try Index(of: url) }
    let firstPage = try await queue.run(index.flatMap { Download($0.pages[0]) })
    #expect(firstPage == "text of first")
    let page = RetryOperation(attempts: 5, backoff: .exponential(initial: .milliseconds(100), cap: .seconds(10))) { _ in
      Download(url)
    }
    #expect(try await queue.run(page) == "text of home")

    let (login, upload) = (AsyncOperation(), AsyncOperation())
    let sync = RetryOperation(attempts: 3) { _ in GroupOperation("Sync") { login ==> upload } }
    try await queue.run(sync)
    #expect(upload.isSuccessful)

    let (download, parse, store) = (AsyncOperation(), AsyncOperation(), AsyncOperation())
    let importer = GroupOperation("Import") { download ==> parse ==> store }
    try await queue.run(importer)
    #expect(store.isSuccessful)
  }

  @Test func nestedGroups() async throws {
    let (index, image) = (ResultOperation { 1 }, ResultOperation { 2 })
    let crawl = GroupOperation("crawl", maxConcurrentOperationCount: 1) {
      index  // a member of “crawl”
      GroupOperation("images") { index ==> image }
    }
    #expect(crawl.operations.count == 2)
    try await queue.run(crawl)
    #expect(image.isSuccessful)
  }
}
