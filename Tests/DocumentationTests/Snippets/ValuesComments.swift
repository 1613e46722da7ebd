import Foundation
import Operations
import OperationsTestSupport
import Testing

private struct Page: Codable, Equatable { let title: String }

private final class Store: AsyncOperation, InputOperation, @unchecked Sendable {
  var input: Page?
}

private final class Sum: ResultOperation<Int>, @unchecked Sendable {
  var left = 0
  var right = 0

  override func execute() { finish(returning: left + right) }
}

private final class PlainDownload: Operation, @unchecked Sendable {
  var file = ""
  override func main() { file = "archive.zip" }
}

private final class Unpack: Operation, @unchecked Sendable {
  var file = ""
}

private struct Session: Sendable {
  func data(from url: URL) async throws -> (Data, Int) { (Data(url.path.utf8), 200) }
}

/// The code of the comments in Sources/Operations/Values.
@Suite(.timeLimit(.minutes(5)))
struct ValuesComments {
  private let queue = OperationQueue()

  @Test func anAdapter() async {
    let (download, unpack) = (PlainDownload(), Unpack())
    let adapter = AdapterOperation(from: download, to: unpack) { download, unpack in unpack.file = download.file }
    queue.addOperations([download, adapter, unpack])
    await unpack.finished()
    #expect(unpack.file == "archive.zip")
  }

  @Test func aTransformation() async throws {
    let download = ResultOperation { Data(#"{"title": "Home"}"#.utf8) }
    let store = Store()
    let parse = TransformOperation { (data: Data) in try JSONDecoder().decode(Page.self, from: data) }
    download.pass(to: parse).pass(to: store)
    try await queue.run(graphEndingIn: store)
    #expect(store.input == Page(title: "Home"))
  }

  @Test func aTask() async throws {
    let (session, url) = (Session(), URL(filePath: "/home"))
    let page = TaskOperation { try await session.data(from: url).0 }
    #expect(try await queue.run(page) == Data("/home".utf8))
  }

  @Test func aZip() async throws {
    let (loadUser, loadPosts) = (ResultOperation { "user" }, TaskOperation { ["post"] })
    let loadFriends = ResultOperation { 3 }
    let (user, posts, friends) = try await queue.run(graphEndingIn: zip(loadUser, loadPosts, loadFriends))
    #expect(user == "user" && posts == ["post"] && friends == 3)
  }

  private struct Screen: Sendable {
    let shown = Gate()
    @MainActor func show(_ result: Result<String, any Error>) { shown.open() }
  }

  @Test func onFinishOnMain() async throws {
    let (loadProfile, screen) = (ResultOperation { "profile" }, Screen())
    loadProfile.onFinishOnMain { result in screen.show(result) }
    _ = try await queue.run(loadProfile)
    await screen.shown.opened()
  }

  @Test func aMap() async throws {
    let download = ResultOperation { "to be or not to be" }
    let words = try await queue.run(graphEndingIn: download.map { $0.split(separator: " ").count })
    #expect(words == 6)
  }

  @Test func aResult() async throws {
    let url = FileManager.default.temporaryDirectory.appending(path: "\(UUID()).txt")
    try Data("four".utf8).write(to: url)
    defer { try? FileManager.default.removeItem(at: url) }
    let length = try await queue.run(ResultOperation { try Data(contentsOf: url).count })
    #expect(length == 4)
  }

  @Test func aPass() async throws {
    let (download, parse) = (ResultOperation { "Home" }, TransformOperation { (title: String) in Page(title: title) })
    let store = Store()
    download.pass(to: parse).pass(to: store)
    try await queue.run(graphEndingIn: store)
    #expect(store.input == Page(title: "Home"))
  }

  @Test func aPassThatWrites() async throws {
    let (left, right, sum) = (ResultOperation { 1 }, ResultOperation { 2 }, Sum())
    left.pass(to: sum) { sum, value in sum.left = value }
    right.pass(to: sum) { sum, value in sum.right = value }
    #expect(try await queue.run(graphEndingIn: sum) == 3)
  }
}
