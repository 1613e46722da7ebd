import Foundation
import Operations
import OperationsTestSupport
import Testing

/// The page Dependencies.
@Suite(.timeLimit(.minutes(5)))
struct Dependencies: Printing {
  private struct NoNetwork: Error, CustomStringConvertible { let description = "no network" }

  private let queue = OperationQueue()
  let printed = Journal<String>()

  private func names(_ operations: [Operation]) -> [String] { operations.map { $0.name ?? "" } }

  @Test func theArrow() {
    let (download, parse, index) = (operation("download"), operation("parse"), operation("index"))
    let (store, report) = (operation("store"), operation("report"))
    download ==> parse  // parse waits for download
    download ==> parse ==> store  // a chain
    download ==> [parse, index]  // both wait for download
    [parse, index] ==> store  // store waits for both
    // Each on the right waits for each on the left.
    [parse, index] ==> [store, report]
    store.waits(for: download)  // the same as download ==> store
    store.waits(for: [parse, index])
    #expect(names(store.dependencies) == ["parse", "index", "download"])
    #expect(names(report.dependencies) == ["parse", "index"])
  }

  @Test func arrays() async {
    typealias Upload = Load
    let (login, store, pages) = (operation("login"), operation("store"), ["home", "news"])
    let downloads = [operation("a"), operation("b")]
    [login] + downloads ==> store  // store waits for all of them
    // One after the other.
    queue.addOperations(chain(pages.map { Upload($0) }))
    await queue.finished()
    #expect(names(store.dependencies) == ["login", "a", "b"])
  }

  @Test func enqueueing() async throws {
    let (download, parse, store) = (operation("download"), operation("parse"), operation("store"))
    download ==> parse ==> store
    queue.addOperations([store, parse, download])  // or
    queue.addGraph(endingIn: store)  // store, and all that it waits for
    try await store.completed()
    #expect(download.isSuccessful && parse.isSuccessful && store.isSuccessful)
  }

  @Test func aCondition() async {
    let load = ResultOperation<Void> { throw NoNetwork() }.named("load")
    let upload = ResultOperation { print("upload") }.named("upload")
    load ==> upload
    upload.addCondition(.noFailedDependencies)
    do { try await queue.run(upload) } catch { print(error) }
    let text = """
      “upload” did not run because its condition “no failed dependencies” was not met: “load” failed. \
      Cause: no network
      """
    #expect(printed.entries == [text])
  }

  @Test func aCycleInAGroup() async {
    let (a, b, c) = (AsyncOperation().named("a"), AsyncOperation().named("b"), AsyncOperation().named("c"))
    a ==> b ==> c ==> a
    let group = GroupOperation([a, b, c]).named("Import")
    queue.addOperation(group)
    await group.finished()
    for error in a.errors { print(error) }
    #expect(printed.entries == ["Dependency cycle in “Import”: a → c → b → a."])
  }
}
