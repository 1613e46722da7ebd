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
    [parse, index] ==> [store, report]  // each on the right waits for each on the left
    store.waits(for: download)  // the same as download ==> store
    store.waits(for: [parse, index])
    #expect(names(parse.dependencies) == ["download"] && names(index.dependencies) == ["download"])
    #expect(names(store.dependencies) == ["parse", "index", "download"])
    #expect(names(report.dependencies) == ["parse", "index"])
    let last = download ==> parse ==> store  // last is store
    #expect(last === store)
  }

  private final class Upload: ResultOperation<Void>, @unchecked Sendable {
    init(_ page: (name: String, written: Journal<String>)) { super.init { page.written.write(page.name) } }
  }

  @Test func arrays() async {
    let (login, store) = (operation("login"), operation("store"))
    let downloads = [operation("a"), operation("b")]
    let pages = (1...9).map { ("\($0)", printed) }
    [login] + downloads ==> store  // store waits for all of them
    queue.addOperations(chain(pages.map { Upload($0) }))  // one after the other
    await queue.finished()
    #expect(names(store.dependencies) == ["login", "a", "b"])
    #expect(printed.entries == (1...9).map(String.init))
  }

  @Test func enqueueing() async throws {
    let (download, parse, store) = (operation("download"), operation("parse"), operation("store"))
    download ==> parse ==> store
    queue.addOperations([store, parse, download])  // or
    queue.addGraph(endingIn: store)  // store, and all that it waits for, or
    try await queue.run(graphEndingIn: store)  // the same, awaited
    #expect(download.isSuccessful && parse.isSuccessful && store.isSuccessful)
  }

  @Test func afterAFailure() async throws {
    let failing = ResultOperation<Void> { throw NoNetwork() }
    let next = ResultOperation { print("next") }
    failing ==> next
    try await queue.run(graphEndingIn: next)
    #expect(printed.entries == ["next"])
  }

  @Test func aCondition() async {
    let load = ResultOperation<Void> { throw NoNetwork() }.named("load")
    let upload = ResultOperation { print("upload") }.named("upload")
    load ==> upload
    upload.addCondition(.noFailedDependencies)
    do { try await queue.run(graphEndingIn: upload) } catch { print(error) }
    #expect(
      printed.entries == [
        "“upload” did not run because its condition “no failed dependencies” was not met: “load” failed. "
          + "Cause: no network"
      ]
    )
  }

  @Test func acrossQueues() async {
    let (screen, disk) = (OperationQueue(), OperationQueue())
    let read = ResultOperation { print("read, in the background") }
    let show = ResultOperation { print("show, in another queue") }
    read ==> show
    screen.addOperation(show)
    disk.addOperation(read)
    await show.finished()
    #expect(printed.entries == ["read, in the background", "show, in another queue"])
  }

  @Test func plainOperations() async {
    let block = BlockOperation { print("a block") }
    let after = ResultOperation { print("after the block") }
    let end = BlockOperation { print("the end") }
    block ==> after ==> end
    queue.addOperations([end, after, block])
    await end.finished()
    #expect(printed.entries == ["a block", "after the block", "the end"])
  }

  @Test func removing() async {
    let never = AsyncOperation()
    let waiting = ResultOperation { print("not waiting any more") }
    never ==> waiting
    queue.addOperation(waiting)
    waiting.removeDependency(never)
    await waiting.finished()
    print(waiting.dependencies.count)
    #expect(printed.entries == ["not waiting any more", "0"])
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

  @Test func aCycleInAQueue() async {
    let (d, e) = (AsyncOperation().named("d"), AsyncOperation().named("e"))
    d ==> e ==> d
    queue.addOperations([d, e])
    print(queue.stallReport())
    d.removeDependency(e)
    await queue.finished()
    let report = """
      2 operations have not finished, in the queue or where it waits:
      “d” waits for “e”, which waits for “d”, in a cycle.
      “e” waits for “d”, which waits for “e”, in a cycle.
      """
    #expect(printed.entries == [report])
  }

  @Test func priorities() async throws {
    let (low, normal, high) = (
      ResultOperation { print("low") }, ResultOperation { print("normal") }, ResultOperation { print("high") }
    )
    low.queuePriority = .low
    high.queuePriority = .high
    let lane = GroupOperation([low, normal, high])
    lane.maxConcurrentOperationCount = 1
    try await queue.run(lane)
    #expect(printed.entries == ["high", "normal", "low"])
  }
}
