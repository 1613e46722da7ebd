import Foundation
import Operations
import OperationsTestSupport
import Testing

/// The page GroupsAndErrors.
@Suite(.timeLimit(.minutes(5)))
struct GroupsAndErrors: Printing {
  struct Bar: Sendable {
    let shown = Journal<Double>()
    func show(_ fraction: Double) { shown.write(fraction) }
  }

  private let queue = OperationQueue()
  let printed = Journal<String>()

  @Test(arguments: [false, true]) func theBuilder(cleansUp: Bool) async throws {
    typealias CleanUp = AsyncOperation
    let (download, parse, store) = (operation("download"), operation("parse"), operation("store"))
    func fetch(_ page: String) -> Operation { Load(page) }
    let pages = ["home", "news"]
    let importer = GroupOperation("Import") {
      download ==> parse ==> store  // adds all three
      for page in pages { fetch(page) }
      if cleansUp { store ==> CleanUp() }
    }
    let members = importer.operations
    try await queue.run(importer)
    #expect(members.count == (cleansUp ? 6 : 5) && members.allSatisfy { $0.isFinished } && store.isSuccessful)
  }

  @Test func nestedGroups() async throws {
    let (index, names) = (operation("index"), ["home", "news"])
    let crawl = GroupOperation("crawl", maxConcurrentOperationCount: 2) {
      index ==> GroupOperation("images") { names.map { Load($0) } }
    }
    #expect(crawl.operations.map(\.name) == ["index", "images"])
    try await queue.run(crawl)
  }

  private struct Photo: Sendable {
    let name: String
    let host = "host"
    func thumbnail(of data: Data) -> String { name }
  }

  private final class Client: Sendable {
    let uploaded = Journal<String>()

    func load(_ photo: Photo) async throws -> Data {
      if photo.name == "missing" { throw NoSuchPage(page: photo.name) }
      return Data()
    }

    func upload(_ thumbnail: String) async throws { uploaded.write(thumbnail) }
  }

  @Test func aPipeline() async throws {
    let (client, backoff, photos) = (Client(), Backoff.immediate, ["a", "missing"].map(Photo.init))
    let prepare = GroupOperation("prepare", maxConcurrentOperationCount: 4)
    let send = GroupOperation("send", maxConcurrentOperationCount: 3)
    for photo in photos {
      let load = TaskOperation { try await client.load(photo) }
      let shrink = load.map { data in photo.thumbnail(of: data) }
      shrink.queuePriority = .high  // before the next load
      let upload = RetryOperation(attempts: 3, backoff: backoff) { _ in try await client.upload(shrink.value) }
        .limited(ExclusivityKey(photo.host), to: 2)
      upload.addCondition(.noFailedDependencies)

      prepare.addOperations([load, shrink])
      send.addOperation(shrink ==> upload)
    }
    let error = await #expect(throws: AggregateError.self) {
      try await queue.run(GroupOperation([prepare, send]).named("import"))
    }
    #expect(client.uploaded.entries == ["a"] && error?.rootFailures.map(\.path.count) == [3])
    #expect(error?.failures.count == 3)
  }

  @Test func aGroupAsAQueue() async {
    let pages = Array(repeating: "home", count: 300)
    let downloads = GroupOperation("Downloads", maxConcurrentOperationCount: 4).started()

    typealias Download = Load
    let urls = pages
    for url in urls {
      await downloads.waitForRoom(below: 100)
      downloads.addOperation(Download(url))
    }

    for page in pages { await downloads.addOperation(Load(page), whenBelow: 100) }
    downloads.finish()
    await downloads.finished()
    #expect(downloads.isSuccessful)
  }

  @Test func flows() async {
    let (reports, report, tenant) = (GroupOperation().started(), operation("report"), (id: 7, name: "seven"))
    report.flow = "tenant \(tenant.id)"
    reports.addOperation(report)
    reports.finish()
    await reports.finished()
    #expect(report.flow == "tenant 7")
  }

  @Test func progress() async {
    let (bigFile, smallFiles, bar) = (operation("big"), [operation("a"), operation("b")], Bar())
    // Counts as ten members; set before it is in the group.
    bigFile.progressWeight = 10
    let group = GroupOperation("Upload") {
      bigFile
      smallFiles
    }
    queue.addOperation(group)
    for await fraction in group.progressUpdates { bar.show(fraction) }
    #expect(bar.shown.entries.last == 1 && group.progress.totalUnitCount == 12)
  }

  @Test func collecting() async throws {
    let nightly = GroupOperation("Nightly") {
      GroupOperation("Import") { Load("home") ==> Load("missing") }
      Load("gone")
    }
    nightly.maxConcurrentOperationCount = 1
    do { try await queue.run(nightly) } catch let error as AggregateError { print(error) }
    #expect(
      printed.entries.joined(separator: "\n") == """
        2 failures:
        - Nightly › Import › missing: there is no page “missing”
        - Nightly › gone: there is no page “gone”
        """
    )
  }

  @Test func catchingACode() async throws {
    func retryLater() { print("later") }
    let operation = AsyncBlockOperation { $0.timeout = .zero }
    do { try await queue.run(operation) } catch OperationError.Code.timedOut { retryLater() }
    #expect(printed.entries == ["later"])
  }

  final class Sync: GroupOperation, @unchecked Sendable {
    var missing = 0

    override func operation(_ member: Operation, didFinishWith errors: [any Error]) -> [any Error] {
      errors.filter { error in
        if error is NoSuchPage { missing += 1 }
        return !(error is NoSuchPage)
      }
    }
  }

  @Test func translating() async throws {
    let sync = Sync([Load("home"), Load("missing"), Load("gone")])
    try await queue.run(sync)
    print("missing:", sync.missing)
    #expect(printed.entries == ["missing: 2"])
  }

  final class Count: GroupOperation, @unchecked Sendable {
    let count: TransformOperation<String, Int>

    init(_ page: String) {
      count = Load(page).map { $0.count }
      super.init("Count") { [count] in count }
    }
  }

  final class Import: GroupOperation, @unchecked Sendable {
    override init(_ name: String? = nil, @OperationBuilder _ operations: () -> [Operation]) {
      super.init(name, operations)
    }
  }

  @Test func subclasses() async throws {
    let (count, home) = (Count("home"), Load("home"))
    #expect(count.name == "Count" && count.operations.count == 2)
    try await queue.run(count)
    try await queue.run(Import("Import") { home })
    #expect(home.isSuccessful)
    #expect(try await count.count.value == "text of home".count)
  }
}
