import Foundation
import Operations
import OperationsTestSupport
import Testing

private struct NotReadyYet: Error {}

actor LoginSession {
  private(set) var isSignedIn = false
  private(set) var logins = 0

  func signIn() async throws {
    logins += 1
    await Task.yield()
    isSignedIn = true
  }
}

/// A new one for each, which the key joins: one that lives as long as the process would look like a leak.
private var loginQueue: OperationQueue { OperationQueue() }

extension OperationCondition {
  static func isSignedIn(_ session: LoginSession) -> Self {
    Self(name: "is signed in") { _ in
      try await loginQueue.run(sharing: "login") {
        TaskOperation { if await !session.isSignedIn { try await session.signIn() } }
      }
    }
  }
}

extension OperationCondition {
  fileprivate static func isReachable(_ host: String) -> Self { Self(name: "\(host) is reachable") { _ in } }
}

/// The pages about migration, and the page FoundationOnLinux.
@Suite(.timeLimit(.minutes(5)))
struct MigrationSnippets {
  private let queue = OperationQueue()

  struct File: Sendable {}

  /// A client with a completion handler, which a test answers.
  final class Client: Sendable {
    let completions = Journal<@Sendable ((any Error)?) -> Void>()

    func send(_ file: File, _ completion: @escaping @Sendable ((any Error)?) -> Void) { completions.write(completion) }

    func stop(_ file: File) { completions.entries.last?(CancellationError()) }
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
    let edits = GroupOperation("Edits", maxConcurrentOperationCount: 1)
      .started()
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

  @Test func aSubclassFinishesWhenItsClientDoes() async throws {
    let client = Client()
    let (upload, cancelled) = (Upload(File(), by: client), Upload(File(), by: client))
    queue.addOperation(upload)
    await client.completions.reaches(1)
    #expect(upload.isExecuting)
    client.completions.entries[0](nil)
    try await upload.completed()
    queue.addOperation(cancelled)
    await client.completions.reaches(2)
    cancelled.cancel()
    await cancelled.finished()
  }

  private final class DownloadOperation: AsyncOperation, @unchecked Sendable { init(to file: File) {} }

  private final class ParseOperation: ResultOperation<Void>, @unchecked Sendable {
    init(from file: File) { super.init { throw NotReadyYet() } }
  }

  @Test func aGroupWithConditionTimeoutAndObserver() async throws {
    let (file, server, shown) = (File(), "server", Journal<Int>())
    let show: @Sendable ([any Error]) -> Void = { shown.write($0.count) }
    let load = GroupOperation("Load") {
      DownloadOperation(to: file) ==> ParseOperation(from: file)
    }
    load.addCondition(.isReachable(server))
    load.timeout = .seconds(30)

    load.clock = ManualClock()

    load.addObserver(
      OperationObserver(didFinish: { operation in show(operation.errors) })
    )
    queue.addOperation(load)
    await load.finished()
    #expect(shown.entries == [1])
  }

  private typealias Page = PassingData.Page

  private struct PageSession: Sendable {
    func data(from url: URL) async throws -> (Data, URL) { (Data(#"{"title": "Hello"}"#.utf8), url) }
  }

  @Test func aValueIsPassedOn() async throws {
    let (session, url, logged) = (PageSession(), URL(filePath: "/page"), Journal<Bool>())
    let log: @Sendable (Result<Page, any Error>) -> Void = { logged.write((try? $0.get()) != nil) }
    let download = TaskOperation { try await session.data(from: url).0 }
    let parse = download.map { data in try JSONDecoder().decode(Page.self, from: data) }
    parse.onFinish { result in log(result) }
    let page = try await queue.run(parse)
    #expect(page == Page(title: "Hello") && logged.entries == [true])
  }

  @Test func aGroupInsteadOfATaskGroup() async throws {
    let urls = ["a", "bc", "def"].map { URL(filePath: "/\($0)") }
    @Sendable func count(_ url: URL) async throws -> Int { url.lastPathComponent.count }
    let counts = urls.map { url in
      TaskOperation { try await count(url) }.named(url.lastPathComponent)
    }
    let sum = collect(counts).map { $0.reduce(0, +) }
    let importer = GroupOperation("Count") { sum }
    importer.maxConcurrentOperationCount = 4
    try await queue.run(importer)
    let words = try await sum.value
    #expect(words == 6)
  }

  @Test func oneLoginForAllWhoNeedIt() async throws {
    let session = LoginSession()
    let uploads = (0..<200).map { _ in AsyncOperation() }
    for upload in uploads { upload.addCondition(.isSignedIn(session)) }
    queue.addOperations(uploads)
    await queue.finished()
    #expect(uploads.allSatisfy { $0.isSuccessful })
    #expect(await session.logins == 1)
  }

  private final class Refresh: ResultOperation<Void>, @unchecked Sendable {
    init(_ feed: Journal<Void>) { super.init { feed.write(()) } }
  }

  @Test func aRepetition() async {
    let feed = Journal<Void>()
    let refreshing = RepeatOperation(pausing: .constant(.seconds(60))) { _ in Refresh(feed) }
    queue.addOperation(refreshing)
    await feed.reaches(1)
    refreshing.cancel()
    await refreshing.finished()
  }

  @Test func fromQueuer() async throws {
    let (page, printed) = ("home", Journal<String>())
    @Sendable func fetch(_ page: String) throws -> String { "text of \(page)" }
    @Sendable func print(_ text: String) { printed.write(text) }
    let store = ResultOperation {}
    let download = RetryOperation(attempts: 5) { _ in ResultOperation { try fetch(page) } }
    queue.maxConcurrentOperationCount = 4
    queue.addOperations(chain([download, store]))
    store.onFinish { _ in print("done") }
    await printed.reaches(1)
    #expect(try await download.value == "text of home")
  }

  @Test func fromPQueue() async throws {
    let url = "home"
    @Sendable func fetch(_ url: String) async throws -> String { "text of \(url)" }
    queue.maxConcurrentOperationCount = 4
    let load = TaskOperation { try await fetch(url) }
    load.timeout = .seconds(60)
    load.queuePriority = .high

    load.clock = ManualClock()

    let page = try await queue.run(load)
    await queue.finished()
    #expect(page == "text of home")
  }

  private final class StatusOperation: ResultOperation<Int>, @unchecked Sendable {
    init(of job: Journal<Void>) {
      super.init {
        job.write(())
        if job.count < 2 { throw NotReadyYet() }
        return job.count
      }
    }
  }

  @Test func askingUntilTheAnswerIsThere() async throws {
    let (job, clock) = (Journal<Void>(), ManualClock())
    let status = RetryOperation(
      attempts: 60,
      backoff: .constant(.seconds(1)),
      retryIf: { error, _ in error is NotReadyYet },
      { _ in StatusOperation(of: job) }
    )
    status.clock = clock
    queue.addOperation(status)
    await clock.waitForSleepers()
    clock.advance(by: .seconds(1))
    #expect(try await status.value == 2)
  }

  // MARK: Foundation on Linux

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

  @Test func anOperationInsteadOfABarrier() async {
    let order = Journal<Int>()
    func note(_ number: Int) -> ResultOperation<Void> { ResultOperation { order.write(number) } }
    let (first, second, compact, third, fourth) = (note(1), note(1), note(2), note(3), note(3))
    [first, second] ==> compact ==> [third, fourth]
    queue.addOperations([first, second, compact, third, fourth])
    await queue.finished()
    #expect(order.entries == [1, 1, 2, 3, 3])
  }
}
