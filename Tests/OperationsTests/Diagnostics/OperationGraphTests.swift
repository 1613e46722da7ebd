import Foundation
import OperationsTestSupport
import Testing

@testable import Operations

@Suite(.timeLimit(.minutes(5)))
struct OperationGraphTests {
  // MARK: Contents

  @Test func plainOperationsAndOwnOnes_areNodesAlike() {
    // An empty name is no name.
    let (a, b, c) = (BlockOperation {}.named("a"), operation(""), Operation())
    a ==> b ==> c
    let graph = OperationGraph([c])
    #expect(graph.nodes.map(\.name) == ["Operation", "async operation", "a"])
    #expect(graph.nodes.map(\.dependencies) == [[1], [2], []] && graph.cycle == nil)
    #expect(graph.nodes.map(\.id) == [0, 1, 2] && graph.nodes.allSatisfy { $0.state == .pending && !$0.isGroup })
    #expect(OperationGraph([a]).nodes.map(\.name) == ["a"], "dependents are not taken in")
  }

  @Test func givenOperationsComeFirst_eachOnce() {
    let (a, b, c) = (operation("a"), operation("b"), operation("c"))
    [a, b, a] ==> c
    let graph = OperationGraph([c, b, c, a, b])
    #expect(graph.nodes.map(\.name) == ["c", "b", "a"])
    #expect(graph.nodes.map { $0.dependencies.sorted() } == [[1, 2], [], []])
  }

  @Test func aMember_bringsItsGroupButNotItsSiblings() {
    let (member, outside, last) = (operation("member"), operation("outside"), operation("last"))
    let group = GroupOperation([member, operation("sibling")]).named("group")
    member ==> outside
    let graph = OperationGraph([outside])
    #expect(graph.nodes.map(\.name) == ["outside", "member", "group"] && graph.nodes[1].group == 2)
    group ==> operation("a") ==> operation("b") ==> last
    // The walk finds the group by its member first, and then as a dependency, which brings all members.
    #expect(OperationGraph([outside, last]).nodes.contains { $0.name == "sibling" })
  }

  @Test func statesAreCurrent() async {
    let (held, queue) = (HeldOperation().named("executing"), OperationQueue())
    let failed = NoteOperation("failed", Journal(), failing: TestError("no"))
    let (cancelled, finished) = (operation("cancelled"), BlockOperation {}.named("finished"))
    cancelled.cancel()
    queue.addOperations([held, failed, finished])
    await held.begun.opened()
    await failed.finished()
    await finished.finished()
    let graph = OperationGraph([held, failed, cancelled, operation("pending"), finished])
    #expect(graph.nodes.map(\.state.rawValue) == graph.nodes.map(\.name))
    for state in OperationGraph.Node.State.allCases { #expect(graph.mermaid().contains("classDef \(state.rawValue) ")) }
    #expect(Set(graph.dot().matches(of: /fillcolor="(#[0-9a-f]+)"/).map(\.1)).count == 5)
    await queue.drained(opening: [held.gate])
  }

  // MARK: Cycles

  @Test func aCycleIsNamedInTheOrderOfWaiting() {
    let (a, b, c) = (operation("a"), Operation().named("b"), operation("c"))
    let (before, after) = (operation("before"), operation("after"))
    a ==> b ==> c ==> a
    before ==> c ==> after
    #expect(OperationGraph([a]).cycle == ["a", "c", "b"])
    let graph = OperationGraph([after])
    #expect(graph.cycle?.sorted() == ["a", "b", "c"])
    #expect(graph.withDurations { _ in .seconds(1) }.criticalPath == nil)
    a.removeDependency(c)
    #expect(OperationGraph([after]).cycle == nil)
  }

  static let groupedCycles: [(waits: String, cycle: [String]?)] = [
    ("", nil),
    ("m1>m2 m2>n", nil),
    ("M>m1", ["M", "m1"]),
    ("m1>M", ["M", "m1"]),
    // Of a group, which waits for its beginning, and not of its members.
    ("M>o o>M", ["M", "o"]),
    ("m1>o o>M", ["M", "m1", "o"]),
    ("N>m1 M>n", ["M", "N", "m1", "n"]),
    ("m1>n n>M", ["M", "m1", "n"]),
  ]

  /// A group M of m1 and m2, a group N of n, and an operation o; "x>y" means that y waits for x.
  @Test(arguments: groupedCycles)
  func aGroupWaitsForItsMembersAndTheyForItsBeginning(waits: String, cycle: [String]?) throws {
    var operations: [String: Operation] = [:]
    for name in ["m1", "m2", "n", "o"] { operations[name] = name == "n" ? Operation() : AsyncOperation() }
    operations["M"] = GroupOperation([try #require(operations["m1"]), try #require(operations["m2"])])
    operations["N"] = GroupOperation([try #require(operations["n"])])
    for (name, operation) in operations { operation.name = name }
    for wait in waits.split(separator: " ") {
      let ends = wait.split(separator: ">").map(String.init)
      operations[ends[1]]?.waits(for: try #require(operations[ends[0]]))
    }
    let roots = ["M", "N", "o"].compactMap { operations[$0] }
    #expect(OperationGraph(roots).cycle?.sorted() == cycle)
    untie(Array(operations.values))
  }

  // MARK: The critical path

  @Test func theCriticalPath_isTheLongestChain() {
    let (load, parse, index, store) = (operation("load"), operation("parse"), operation("index"), operation("store"))
    load ==> [parse, index] ==> store
    let seconds = ["load": 3, "parse": 1, "index": 4, "store": 2]
    let graph = OperationGraph([store])
    #expect(graph.criticalPath == nil)
    let path = graph.withDurations { .seconds(seconds[$0.name] ?? 0) }.criticalPath
    #expect(path?.names == ["load", "index", "store"] && path?.description == "9 s: load → index → store")
    // An unknown duration counts as zero.
    let partial = graph.withDurations { $0.name == "parse" ? .seconds(2) : nil }.criticalPath
    #expect(partial?.duration == .seconds(2) && partial?.names == ["parse"])
    #expect(graph.withDurations { _ in nil }.criticalPath == nil)
  }

  @Test func aGroupTakesAsLongAsItsMembers() {
    let (before, after) = (operation("before"), operation("after"))
    let group = GroupOperation("group") { operation("a") ==> operation("b") }
    before ==> group ==> after
    let path = OperationGraph([after]).withDurations { $0.isGroup ? .seconds(100) : .seconds(1) }.criticalPath
    #expect(path?.names == ["before", "a", "b", "after"] && path?.duration == .seconds(4))
    let empty = OperationGraph([GroupOperation().named("empty")]).withDurations { _ in .seconds(3) }.criticalPath
    #expect(empty?.names == ["empty"] && empty?.duration == .seconds(3))
  }

  @Test func aLongCriticalPath_isDescribedInFewNames() {
    let operations = chain((1...100).map { operation("\($0)") })
    let path = OperationGraph([operations[99]]).withDurations { _ in .seconds(1) }.criticalPath
    #expect(path?.names.count == 100)
    #expect(path?.description == "100 s: 1 → 2 → 3 → 4 → 5 → 6 → … 92 more … → 99 → 100")
  }
}
