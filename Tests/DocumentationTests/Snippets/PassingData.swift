import Foundation
import Operations
import OperationsTestSupport
import Testing

/// The page PassingData.
@Suite(.timeLimit(.minutes(5)))
struct PassingData: Printing {
  struct Page: Codable, Sendable, Equatable { let title: String }

  final class Database: Sendable {
    let pages = Journal<Page>()
    func insert(_ page: Page) { pages.write(page) }
  }

  final class Show: AsyncOperation, @unchecked Sendable { var cached = "nothing" }
  final class File: Operation, @unchecked Sendable { var file = "" }

  private let queue = OperationQueue()
  let printed = Journal<String>()

  private func fetch(_ url: URL) async throws -> Data { Data(#"{"title": "\#(url.lastPathComponent)"}"#.utf8) }

  final class Store: AsyncOperation, InputOperation, @unchecked Sendable {
    var input: Page?
    private let database: Database

    init(_ database: Database) { self.database = database }

    override func execute() {
      guard let input else { return finish() }
      database.insert(input)
      finish()
    }
  }

  @Test func aChain() async throws {
    let (url, database) = (URL(filePath: "/home"), Database())
    let store = Store(database)  // an InputOperation of your own, below
    let download = TaskOperation { try await fetch(url) }
    let parse = TransformOperation { (data: Data) in try JSONDecoder().decode(Page.self, from: data) }
    download.pass(to: parse).pass(to: store)
    try await queue.run(store)
    #expect(database.pages.entries == [Page(title: "home")])
  }

  final class Sum: ResultOperation<Int>, @unchecked Sendable {
    var left = 0
    var right = 0

    override func execute() { finish(returning: left + right) }
  }

  @Test func writing() async throws {
    let (left, right) = (ResultOperation { 1 }, ResultOperation { 2 })
    let sum = Sum()
    left.pass(to: sum) { sum, value in sum.left = value }
    right.pass(to: sum) { sum, value in sum.right = value }
    print(try await queue.run(sum))
    #expect(printed.entries == ["3"])
  }

  @Test func madeOfOthers() async throws {
    let (user, settings, news) = (Load("user"), Load("settings"), Load("news"))
    let greeting = zip(user, settings, news).map { user, settings, news in "\(user), \(settings), \(news)" }
    let pages = collect(["home", "news"].map { name in Load(name) })
    let texts = try await queue.run(pages)
    #expect(texts == ["text of home", "text of news"])
    #expect(try await queue.run(greeting) == "text of user, text of settings, text of news")

    let index = ResultOperation { ["home", "news"] }
    let firstPage = index.flatMap { names in Load(names[0]) }
    print(try await queue.run(firstPage))

    let allPages = index.flatMap { names in GroupOperation(names.map { name in Load(name) }) }
    try await queue.run(allPages)
    #expect(printed.entries == ["text of home"])
  }

  @Test func noValue() async throws {
    let load = Load("missing")
    let lines = load.map { text in text.split(separator: "\n") }.named("lines")
    let count = lines.map { lines in lines.count }.named("count")
    do { print(try await queue.run(count)) } catch OperationError.Code.inputUnavailable { print(count.errors[0]) }
    #expect(
      printed.entries == ["“count” has no input from “lines”, because “missing” failed: there is no page “missing”"]
    )
  }

  @Test func optionalInputs() async throws {
    let (cache, page) = (Load("missing"), Show())
    cache.pass(to: page, input: .optional) { page, cached in page.cached = cached }
    try await queue.run(page)
    #expect(page.cached == "nothing" && page.isSuccessful)
  }

  @Test func plainOperations() async {
    let (download, unpack) = (File(), File())
    download.file = "archive.zip"
    let adapter = AdapterOperation(from: download, to: unpack) { download, unpack in unpack.file = download.file }
    queue.addOperations([download, adapter, unpack])
    await queue.finished()
    #expect(unpack.file == "archive.zip")
  }
}
