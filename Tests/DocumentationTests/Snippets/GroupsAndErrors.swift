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
    let (download, parse) = (operation("download"), operation("parse"))
    let (store, cleanUp) = (operation("store"), operation("cleanUp"))
    let pages = ["home", "news"]
    let importer = GroupOperation("Import") {
      download ==> parse ==> store  // takes in all three
      for page in pages { Load(page) }
      if cleansUp { store ==> cleanUp }
    }
    try await queue.run(importer)
    #expect(store.isSuccessful && cleanUp.isFinished == cleansUp)
    let (before, first, second) = (operation("before"), operation("first"), operation("second"))
    before ==> first
    let exactlyThese = GroupOperation([first, second])
    #expect(exactlyThese.operations == [first, second])
  }

  @Test func aMemberAddsMembers() async throws {
    let crawl = GroupOperation().named("Crawl")
    crawl.addOperation(
      ResultOperation { [weak crawl] in
        print("index")
        crawl?.addOperations(["page 1", "page 2"].map { page in ResultOperation { print(page) } })
      }
    )
    crawl.maxConcurrentOperationCount = 1
    try await queue.run(crawl)
    #expect(printed.entries == ["index", "page 1", "page 2"])
  }

  @Test func aGroupAsAQueue() async {
    let pages = Array(repeating: "home", count: 300)
    let downloads = GroupOperation().named("Downloads")
    downloads.staysOpen = true
    downloads.maxConcurrentOperationCount = 4
    queue.addOperation(downloads)

    typealias Download = Load
    let urls = pages
    for url in urls {
      await downloads.waitForRoom(below: 100)
      downloads.addOperation(Download(url))
    }

    for page in pages {
      await downloads.waitForRoom(below: 100)
      downloads.addOperation(Load(page))
    }
    downloads.staysOpen = false
    await downloads.finished()
    #expect(downloads.isSuccessful)
  }

  @Test func progress() async {
    let (bigFile, smallFiles, bar) = (operation("big"), [operation("a"), operation("b")], Bar())
    bigFile.progressWeight = 10  // counts as ten members; set before it is in the group
    let uploads = GroupOperation("Upload") {
      bigFile
      smallFiles
    }
    let updates = uploads.progressUpdates
    queue.addOperation(uploads)
    for await fraction in updates { bar.show(fraction) }
    #expect(bar.shown.entries.last == 1 && uploads.progress.totalUnitCount == 12)
  }

  @Test func collecting() async throws {
    let nightly = GroupOperation("Nightly") {
      GroupOperation("Import") { Load("home") ==> Load("missing") }
      Load("gone")
    }
    nightly.maxConcurrentOperationCount = 1
    do {
      try await queue.run(nightly)
    } catch let error as AggregateError {
      print(error)
      print(error.primary.path, error.errors(of: NoSuchPage.self).count)
    }
    #expect(
      printed.entries.joined(separator: "\n") == """
        2 failures:
        - Nightly › Import › missing: there is no page “missing”
        - Nightly › gone: there is no page “gone”
        ["Nightly", "Import", "missing"] 2
        """
    )
  }

  @Test func cancellingOnFailure() async {
    let allOrNothing = GroupOperation("Deploy") { Load("missing") ==> Load("home") }
    allOrNothing.errorPolicy = .cancelOnFailure
    do { try await queue.run(allOrNothing) } catch { print(error) }
    #expect(printed.entries == ["Deploy › missing: there is no page “missing”"])
    #expect(!allOrNothing.isCancelled)
  }

  @Test func thePrimaryFailure() async throws {
    let page = Load("missing")
    let count = page.map { $0.count }.named("count")
    let counting = GroupOperation("Counting") { count }
    do {
      try await queue.run(counting)
    } catch let error as AggregateError {
      for failure in error.failures { print(failure) }
      print("primary:", error.primary)
    }
    #expect(
      printed.entries == [
        "Counting › missing: there is no page “missing”",
        "Counting › count: “count” has no input from “missing”, which failed: there is no page “missing”",
        "primary: Counting › missing: there is no page “missing”",
      ]
    )
    let error = AggregateError(counting.failures)
    let causes = error.failures.filter { !(OperationError.Code.inputUnavailable ~= $0.error) }
    #expect(causes.map(\.path) == [["Counting", "missing"]])
  }

  @Test func catchingACode() async throws {
    let slow = AsyncBlockOperation { _ in }.named("slow")  // never calls finish
    slow.timeout = .milliseconds(10)
    do {
      try await queue.run(slow)
    } catch OperationError.Code.timedOut {
      print("too slow")
    }

    func retryLater() { print("later") }
    let operation = AsyncBlockOperation { _ in }
    operation.timeout = .milliseconds(1)
    do {
      try await queue.run(operation)
    } catch OperationError.Code.timedOut {
      retryLater()
    }
    #expect(printed.entries == ["too slow", "later"])
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

  final class Crawl: GroupOperation, @unchecked Sendable {
    private var found: Set<String>

    init(from start: String) {
      found = [start]
      super.init("Crawl") { Load(start) }
    }
  }

  final class Import: GroupOperation, @unchecked Sendable {
    override init(_ name: String? = nil, @OperationBuilder _ operations: () -> [Operation]) {
      super.init(name, operations)
    }
  }

  @Test func subclasses() async throws {
    let crawl = Crawl(from: "home")
    #expect(crawl.name == "Crawl" && crawl.operations.map(\.name) == ["home"])
    try await queue.run(crawl)

    let home = Load("home")
    let importer = Import("Import") { home }
    importer.maxConcurrentOperationCount = 4
    importer.isSuspended = true  // starts no more members
    importer.isSuspended = false
    try await queue.run(importer)
    #expect(home.isSuccessful)
  }

  @Test func cancelling() async {
    let (begun, end) = (Gate(), Gate())
    let working = AsyncBlockOperation { operation in
      begun.open()
      end.whenOpen { operation.finish() }
    }.named("working")
    let waiting = ResultOperation { print("never") }.named("waiting")
    let job = GroupOperation("Job") { working ==> waiting }
    for operation in [waiting, working, job] {
      operation.addObserver(
        OperationObserver(
          didCancel: { print($0.name ?? "", "is cancelled") },
          didFinish: { print($0.name ?? "", "has finished") }
        )
      )
    }
    queue.addOperation(job)
    await begun.opened()
    job.cancel()
    await waiting.finished()
    end.open()
    await job.finished()
    #expect(
      printed.entries == [
        "Job is cancelled", "working is cancelled", "waiting is cancelled",
        "waiting has finished", "working has finished", "Job has finished",
      ]
    )
  }
}
