import Foundation  // and FoundationNetworking, for URLSession on Linux
import Operations
import OperationsTestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct ReadMeSnippets {
  // MARK: The first screen

  final class Download: AsyncOperation, @unchecked Sendable {
    let url: URL
    init(_ url: URL) { self.url = url }

    override func execute() {  // begin the work …
      session.dataTask(with: url) { [self] _, _, error in
        if let error { return finish(with: error) }
        finish()  // … and say when it is done, on any thread
      }.resume()
    }
  }

  @Test func theFirstScreen() async throws {
    let url = try #require(URL(string: "https://example.org/0"))
    let page1 = try #require(URL(string: "https://example.org/1"))
    let page2 = try #require(URL(string: "https://example.org/2"))
    let fetch: @Sendable (URL) async throws -> String = { _ in "one two three" }

    let queue = OperationQueue()  // any stock queue
    try await queue.run(Download(url))  // one operation, awaited

    let importer = GroupOperation("Import") {  // many as one
      Download(page1) ==> Parse() ==> [Store(), Index()]
      Download(page2)
    }
    try await queue.run(importer)  // throws every error, each with its path

    let text = TaskOperation { try await fetch(url) }  // an async function as an operation
    let words = text.map { $0.split(separator: " ").count }  // waits for it, and takes its value
    print(try await queue.run(graphEndingIn: words))  // enqueues all that `words` waits for, too

    #expect(importer.isSuccessful && importer.operations.isEmpty)
    #expect(try await words.value == 3)
    let urls = [url, page1, page2].map(\.absoluteString)
    #expect(session.requests.entries.filter(urls.contains).sorted() == urls)
  }

  // MARK: The tour

  @Test func anObserver() async throws {
    let journal = Journal<String>()
    let log: @Sendable (String?, [any Error]) -> Void = { name, errors in
      journal.write("\(name ?? ""), \(errors.count) errors")
    }
    let operation = Parse().named("parse")
    operation.addObserver(OperationObserver(didFinish: { operation in log(operation.name, operation.errors) }))
    try await OperationQueue().run(operation)
    #expect(journal.entries == ["parse, 0 errors"])
  }

  @Test func values() async throws {
    let queue = OperationQueue()
    let download = ResultOperation { "1 2" }
    let parse = TransformOperation { (text: String) in text.split(separator: " ").compactMap { Int($0) } }
    let store = TransformOperation { (numbers: [Int]) in numbers.count }
    let (left, right, sum) = (ResultOperation { 1 }, ResultOperation { 2 }, Sum())
    let (user, settings) = (ResultOperation { User() }, ResultOperation { Settings() })
    let pages = [ResultOperation { Page() }, ResultOperation { Page() }]
    let index = ResultOperation { Contents() }

    download.pass(to: parse).pass(to: store)  // no operation in between that could be forgotten
    left.pass(to: sum) { sum, value in sum.left = value }  // any AsyncOperation can be the consumer
    right.pass(to: sum) { sum, value in sum.right = value }  // handed over one at a time, just before `sum` executes

    let both = zip(user, settings)  // (User, Settings)
    let all = collect(pages)  // [Page], in the order given
    let first = index.flatMap { DownloadPage($0.pages[0]) }  // the operation that a value leads to

    #expect(try await queue.run(graphEndingIn: store) == 2)
    #expect(try await queue.run(graphEndingIn: sum) == 3)
    let pair: (User, Settings) = try await queue.run(graphEndingIn: both)
    _ = pair
    #expect(try await queue.run(graphEndingIn: all) == [Page(), Page()])
    #expect(try await queue.run(graphEndingIn: first) == Page())
  }

  @Test func conditionsTimeAndProgress() async throws {
    let session = SignIn()
    let bar = Bar()
    let upload = Store()
    let url = try #require(URL(string: "https://example.org/3"))
    let importer = GroupOperation("Import", { Parse() })

    upload.addCondition(.noFailedDependencies)
    upload.addCondition(
      OperationCondition(name: "signed in") { _ in
        guard await session.isSignedIn else { throw SessionError.signedOut }  // unmet: it finishes unexecuted
      }
    )
    upload.timeout = .seconds(30)  // then cancelled and finished: the queue is free

    // swift-format-ignore: OnlyOneTrailingClosureArgument
    let page = RetryOperation(
      attempts: 5,
      backoff: .exponential(initial: .milliseconds(100), cap: .seconds(10), jitter: 0.5),
      retryIf: { error, attempt in error is NetworkError }
    ) { attempt in Download(url) }

    let queue = OperationQueue()
    queue.addOperation(importer)
    for await fraction in importer.progressUpdates { bar.show(fraction) }

    #expect(bar.fractions.entries.last == 1)
    await #expect(throws: OperationError(.conditionFailed, "")) { try await queue.run(upload) }
    try await queue.run(page)
  }

  // MARK: Schedulers

  actor Library: ScheduledActor {  // an actor that lives there: the compiler checks
    nonisolated let scheduler: SerialScheduler
    init(on scheduler: SerialScheduler) { self.scheduler = scheduler }
  }

  final class Printer: Schedulable, @unchecked Sendable {  // a class that lives there: checked when it runs
    let scheduler = SerialScheduler(name: "printer")
    @Confined private var lines: [String] = []  // elsewhere a trap that names it and both schedulers
  }

  @Test func objectsOnAScheduler() async throws {
    let (file, line) = ("file", "line")
    let log = Log()
    let view = View()
    let load: @Sendable (String) throws -> Page = { _ in Page() }
    let measure: @Sendable (String) throws -> Int = { $0.count }

    let disk = SerialScheduler(name: "disk")  // an OperationQueue of one; SerialScheduler.main is the main one

    disk.schedule { log.append(line) }  // an event; the closure runs later, on “disk”
    let size = try await disk.run { try measure(file) }  // with an answer
    disk.schedule({ try load(file) }, deliverOn: .main, { result in view.show(result) })  // the answer on main
    disk.schedule(after: .seconds(60)) { log.flush() }  // returns what cancels it

    await view.results.reaches(1)
    #expect(size == 4 && log.lines.entries == ["line"] && view.results.entries == [Page()])
    #expect(Library(on: disk).scheduler === disk && Printer().scheduler.name == "printer")
  }

  // MARK: Seeing what happens

  @Test func askingWhy() {
    let queue = OperationQueue()
    let (login, upload) = (Parse().named("login"), Store().named("upload"))
    login ==> upload
    queue.addOperation(upload)

    print(queue.stallReport())  // why does my operation not run?

    #expect(
      queue.stallReport().description.hasSuffix(
        """
        “login” was never added to a queue or a group.
        “upload” waits for “login”, which was never added to a queue or a group.
        """
      )
    )
    queue.addOperation(login)
  }

  @Test func tracing() async throws {
    let queue = OperationQueue()
    let importer = GroupOperation("Import") { Parse() ==> Store() }
    let file = FileManager.default.temporaryDirectory.appending(path: "\(UUID().uuidString).json")
    defer { try? FileManager.default.removeItem(at: file) }

    let tracer = OperationTracer()
    tracer.trace(importer)  // its members, too, also those that are added later
    try await queue.run(importer)
    print(tracer.graph.mermaid())  // OperationGraph([importer]).mermaid() before it runs
    print(tracer.timeline(), tracer.summary, separator: "\n")
    try tracer.chromeTrace().write(to: file)  // for ui.perfetto.dev or chrome://tracing

    #expect(FileManager.default.fileExists(atPath: file.path))
  }

  // MARK: Stand-ins

  /// What a session of Foundation's is, without a network.
  final class Session: Sendable {
    let requests = Journal<String>()

    struct Request {
      let body: @Sendable () -> Void
      func resume() { DispatchQueue.global().async(execute: body) }
    }

    func dataTask(with url: URL, _ completion: @escaping @Sendable (Data?, Int?, (any Error)?) -> Void)
      -> Request
    {
      requests.write(url.absoluteString)
      return Request { completion(Data(), nil, nil) }
    }
  }

  final class Parse: AsyncOperation, @unchecked Sendable {}
  final class Store: AsyncOperation, @unchecked Sendable {}
  final class Index: AsyncOperation, @unchecked Sendable {}

  struct User: Sendable {}
  struct Settings: Sendable {}
  struct Page: Equatable, Sendable {}

  struct Contents: Sendable {
    let pages = [URL(filePath: "first")]
  }

  final class DownloadPage: ResultOperation<Page>, @unchecked Sendable {
    init(_ url: URL) { super.init() }
    override func execute() { finish(returning: Page()) }
  }

  final class Sum: ResultOperation<Int>, @unchecked Sendable {
    var left = 0
    var right = 0
    override func execute() { finish(returning: left + right) }
  }

  struct NetworkError: Error {}
  enum SessionError: Error { case signedOut }

  actor SignIn {
    private(set) var isSignedIn = false
  }

  final class RefreshToken: ResultOperation<String>, @unchecked Sendable {
    init(_ session: SignIn) { super.init() }
    override func execute() { finish(returning: "token") }
  }

  struct Bar {
    let fractions = Journal<Double>()
    func show(_ fraction: Double) { fractions.write(fraction) }
  }

  final class Log: Sendable {
    let lines = Journal<String>()
    func append(_ line: String) { lines.write(line) }
    func flush() {}
  }

  @MainActor final class View {
    nonisolated let results = Journal<Page>()
    func show(_ result: Result<Page, any Error>) { if case .success(let page) = result { results.write(page) } }
  }
}

private let session = ReadMeSnippets.Session()

extension SharedDomainSnippets {
  @Suite(.timeLimit(.minutes(5)))
  struct ReadMeExclusivity {
    private typealias RefreshToken = ReadMeSnippets.RefreshToken

    @Test func oneAtATime() async throws {
      let queue = OperationQueue()
      let session = ReadMeSnippets.SignIn()
      let (alert, transfer, newest) = (ReadMeSnippets.Parse(), ReadMeSnippets.Store(), ReadMeSnippets.Index())
      let (page, read) = (AsyncOperation(), AsyncOperation())

      queue.addOperation(alert.exclusive("alert"))  // under one key never two at once, in whatever queue or group
      queue.addOperation(transfer.exclusive("account 1", "account 2"))  // all keys or none: no deadlock
      queue.addOperation(newest.exclusive("alert", policy: .replace))  // cancels those before it
      queue.addOperation(page.limited("host", to: 4).throttled("api", to: 10, per: .seconds(1)))
      queue.addOperation(read.shared("database"))  // beside other reads, never beside an exclusive write

      let token = try await queue.run(sharing: "refresh token") { RefreshToken(session) }  // one for all who ask

      await queue.finished()
      #expect(token == "token")
      #expect(transfer.isSuccessful, "\(transfer.state) \(transfer.isCancelled) \(transfer.errors)")
      #expect(newest.isSuccessful, "\(newest.state) \(newest.isCancelled) \(newest.errors)")
    }
  }
}
