import Foundation
import Operations
import OperationsTestSupport
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@MainActor
private final class Screen {
  static let shared = Screen()
  var shown: [String] = []

  func show(_ text: String, _ completion: @escaping @MainActor () -> Void) {
    shown.append(text)
    completion()
  }
}

private struct Client: Sendable {
  var error: (any Error)?

  func upload(_ file: String, _ completion: @escaping @Sendable ((any Error)?) -> Void) {
    DispatchQueue.global().async { completion(error) }
  }
}

private actor Session {
  private(set) var isSignedIn = false
  func signIn() { isSignedIn = true }
}

private enum SessionError: Error { case signedOut }

/// Work that counts its own units.
private final class Storing: AsyncOperation, @unchecked Sendable {
  let pages: [String]
  let stored = Journal<String>()

  init(_ pages: [String]) { self.pages = pages }

  private func store(_ page: String) { stored.write(page) }

  override func execute() {
    progress.totalUnitCount = Int64(pages.count)
    for page in pages {
      store(page)
      progress.completedUnitCount += 1
    }
    finish()
  }
}

/// The code of the comments in Sources/Operations/Operation.
@Suite(.timeLimit(.minutes(5)))
struct OperationComments {
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

  private let queue = OperationQueue()
  private let printed = Journal<String>()

  private func print(_ items: String...) { printed.write(items.joined(separator: " ")) }

  @Test func aDownload() async {
    let missing = FileManager.default.temporaryDirectory.appending(path: "there is no such file")
    await #expect(throws: (any Error).self) { try await queue.run(Download(missing)) }
  }

  @Test func anObserver() async throws {
    let operation = AsyncOperation().named("page 3")
    operation.addObserver(OperationObserver(didFinish: { print($0.name ?? "?", "is done") }))
    try await queue.run(operation)
    #expect(printed.entries == ["page 3 is done"])
  }

  @Test(arguments: [nil, SessionError.signedOut])
  fileprivate func aBlock(failing error: SessionError?) async {
    let (client, file) = (Client(error: error), "photo")
    let upload = AsyncBlockOperation { operation in
      client.upload(file) { error in
        if let error { operation.finish(with: error) } else { operation.finish() }
      }
    }
    queue.addOperation(upload)
    await upload.finished()
    #expect(upload.errors as? [SessionError] == [error].compactMap(\.self))
  }

  @Test func aDelay() async {
    let clock = ManualClock()
    let (request, nextRequest) = (AsyncOperation(), AsyncOperation())
    request ==> DelayOperation(.seconds(1)) ==> nextRequest
    let group = GroupOperation { nextRequest }
    group.clock = clock
    queue.addOperation(group)
    await clock.waitForSleepers(1)
    #expect(request.isFinished && !nextRequest.isFinished)
    clock.advance(by: .seconds(1))
    await nextRequest.finished()
  }

  @Test func anAlert() async throws {
    try await queue.run(Alert("Low ink"))
    #expect(await Screen.shared.shown == ["Low ink"])
  }

  @Test func aCondition() async throws {
    let session = Session()
    func upload() -> AsyncOperation {
      let upload = AsyncOperation()
      upload.addCondition(
        OperationCondition(name: "signed in") { _ in
          guard await session.isSignedIn else { throw SessionError.signedOut }
        }
      )
      return upload
    }
    let error = await #expect(throws: OperationError.self) { try await queue.run(upload()) }
    #expect(error?.code == .conditionFailed && error?.underlyingErrors as? [SessionError] == [.signedOut])
    await session.signIn()
    try await queue.run(upload())
  }

  @Test func progress() async throws {
    let storing = Storing(["a", "b", "c"])
    let progress = storing.progress
    try await queue.run(storing)
    #expect(storing.stored.entries == ["a", "b", "c"])
    #expect(progress.totalUnitCount == 3 && progress.isFinished)
  }
}
