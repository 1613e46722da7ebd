import Foundation
import Operations
import OperationsTestSupport
import Testing

private struct Session: Sendable {
  func data(from url: URL) async throws -> (Data, Int) { (Data(url.path.utf8), 200) }
  func upload(_ photo: String) async throws -> Int { photo.count }
}

private struct Index: Sendable {
  init(of folder: URL) throws {}
}

/// The code of the comments in Sources/Operations/Queues.
@Suite(.timeLimit(.minutes(5)))
struct QueuesComments {
  private let queue = OperationQueue()
  private let session = Session()

  @Test func aSynchronousClosure() async throws {
    let file = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
    try Data("three short words".utf8).write(to: file)
    defer { try? FileManager.default.removeItem(at: file) }
    let words = try await queue.run { try String(contentsOf: file, encoding: .utf8).split(separator: " ").count }
    #expect(words == 3)
  }

  @Test func anAsynchronousClosure() async throws {
    let url = URL(filePath: "/home")
    let page = try await queue.run { try await session.data(from: url).0 }
    #expect(page == Data("/home".utf8))
  }

  @Test func addedClosures() async throws {
    let (folder, photo) = (URL(filePath: "/"), "photo")
    let index = queue.addTask("index") { try Index(of: folder) }
    queue.addTask("upload") { try await session.upload(photo) }
    _ = try await index.value
    await queue.finished()
  }
}
