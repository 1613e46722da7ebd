import Foundation
import Operations
import OperationsTestSupport
import Testing

extension OperationCondition {
  fileprivate static func isReachable(_ host: String) -> Self { Self(name: "\(host) is reachable") { _ in } }
}

/// The pages about migration, and the page FoundationOnLinux.
@Suite(.timeLimit(.minutes(5)))
struct MigrationSnippets {
  private let queue = OperationQueue()

  struct File: Sendable {}

  /// A client with a completion handler.
  struct Client: Sendable {
    func send(_ file: File, _ completion: @escaping @Sendable ((any Error)?) -> Void) { completion(nil) }
    func stop(_ file: File) {}
  }

  final class Upload: AsyncOperation, @unchecked Sendable {
    private let file: File
    private let client: Client

    init(_ file: File, by client: Client) {
      self.file = file
      self.client = client
    }

    override func execute() {
      client.send(file) { [self] error in
        if let error { return finish(with: error) }
        finish()
      }
    }

    override func didCancel() { client.stop(file) }
  }

  class BaseOperation: AsyncOperation, @unchecked Sendable {
    override init() {
      super.init()
      finishesWhenCancelled = true
    }
  }

  private final class ListingQueue: OperationQueue, @unchecked Sendable {
    let added = Journal<String>()

    override func addOperation(_ operation: Operation) {
      added.write(operation.name ?? "")
      super.addOperation(operation)
    }
  }

  @Test func anOverrideIsCalledForOneOperationAndNotForSeveral() async throws {
    let queue = ListingQueue()
    try await queue.run(operation("run"))
    queue.addOperation(operation("add"))
    queue.addOperations([operation("list")])
    let (first, last) = (operation("first"), operation("last"))
    first ==> last
    try await queue.run(last)
    await queue.finished()
    #expect(queue.added.entries == ["run", "add"])
  }

  @Test func aGroupInsteadOfASerialQueue() async {
    let order = Journal<Int>()
    let edits = GroupOperation("Edits", maxConcurrentOperationCount: 1).started()
    for number in 0..<100 {
      let edit = ResultOperation { order.write(2 * number) }
      edit.addObserver(OperationObserver(didFinish: { _ in order.write(2 * number + 1) }))
      edits.addOperation(edit)
    }
    edits.finish()
    await edits.finished()
    #expect(order.entries == Array(0..<200))
  }

  @Test func aBaseClassWhoseCancellationFinishes() async {
    final class Endless: BaseOperation, @unchecked Sendable { override func execute() { cancel() } }
    let operation = Endless()
    queue.addOperation(operation)
    await operation.finished()
    #expect(operation.isCancelled && operation.errors.isEmpty)
  }

  @Test func aSubclassFinishesWhenItsClientDoes() async throws { try await queue.run(Upload(File(), by: Client())) }

  private final class DownloadOperation: AsyncOperation, @unchecked Sendable { init(to file: File) {} }

  private final class ParseOperation: ResultOperation<Void>, @unchecked Sendable {
    init(from file: File) { super.init { throw CocoaError(.fileReadUnknown) } }
  }

  @Test func aGroupWithConditionTimeoutAndObserver() async throws {
    let (file, server, shown) = (File(), "server", Journal<Int>())
    let show: @Sendable ([any Error]) -> Void = { shown.write($0.count) }
    let load = GroupOperation("Load") { DownloadOperation(to: file) ==> ParseOperation(from: file) }
    load.addCondition(.isReachable(server))
    load.timeout = .seconds(30)

    load.clock = ManualClock()

    load.addObserver(OperationObserver(didFinish: { operation in show(operation.errors) }))
    queue.addOperation(load)
    await load.finished()
    #expect(shown.entries == [1])
  }

  @Test func aGroupInsteadOfATaskGroup() async throws {
    let urls = ["a", "bc", "def"].map { URL(filePath: "/\($0)") }
    @Sendable func count(_ url: URL) async throws -> Int { url.lastPathComponent.count }
    let counts = urls.map { url in TaskOperation { try await count(url) }.named(url.lastPathComponent) }
    let sum = collect(counts).map { $0.reduce(0, +) }
    let importer = GroupOperation("Count") { sum }
    importer.maxConcurrentOperationCount = 4
    try await queue.run(importer)
    let words = try await sum.value
    #expect(words == 6)
  }

  /// Each condition has a queue of its own.
  @Test func oneLoginForAllConditions() async {
    let (domain, logins, uploads) = (ExclusivityDomain(), Journal<Void>(), (0..<200).map { _ in AsyncOperation() })
    for upload in uploads {
      upload.addCondition(
        OperationCondition(name: "signed in") { _ in
          try await OperationQueue().run(sharing: "login", in: domain) {
            TaskOperation { if logins.count == 0 { logins.write(()) } }
          }
        }
      )
    }
    queue.addOperations(uploads)
    await queue.finished()
    #expect(uploads.allSatisfy { $0.isSuccessful } && logins.count == 1)
  }

  @Test func theVerbIsPickedByTheDeclaration() async {
    typealias Download = AsyncOperation
    let (download, upload): (Download, Download) = (operation("download"), operation("upload"))
    let (first, second): (Operation, Operation) = (operation("first"), operation("second"))
    let tracer = OperationTracer()
    tracer.trace(queue)
    // Declared as a Download: the package's method.
    queue.addOperation(download)
    queue.addOperation(upload as Operation)  // Foundation's own
    // The package's, whatever these are declared as.
    queue.addOperations([first, second])
    await queue.finished()
    #expect(tracer.records.map(\.name) == ["download", "first", "second"])
  }
}
