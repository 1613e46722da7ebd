import Foundation
import Operations
import OperationsTestSupport
import Testing

@Suite struct OperationGraphTests {
  private let journal = Journal<String>()

  private func note(_ name: String) -> NoteOperation { NoteOperation(name, journal) }

  // MARK: What is in it

  @Test func whatOperationsDependOnComesAlong() {
    let (a, b, c) = (note("a"), note("b"), note("c"))
    a ==> b ==> c
    let graph = OperationGraph([c])
    #expect(graph.nodes.map(\.name) == ["c", "b", "a"])
    #expect(graph.nodes.map(\.dependencies) == [[1], [2], []])
    #expect(graph.cycle == nil)
  }

  @Test func membersAreInTheirGroup() {
    let (a, b, after) = (note("a"), note("b"), note("after"))
    let inner = GroupOperation("inner") { a ==> b }
    let outer = GroupOperation("outer") { inner }
    outer ==> after
    let graph = OperationGraph([after])
    let ids = Dictionary(uniqueKeysWithValues: graph.nodes.map { ($0.name, $0.id) })
    #expect(graph.nodes.count == 5)
    #expect(graph.nodes.filter(\.isGroup).map(\.name).sorted() == ["inner", "outer"])
    let groups = Dictionary(uniqueKeysWithValues: graph.nodes.map { ($0.name, $0.group) })
    #expect(groups == ["after": nil, "outer": nil, "inner": ids["outer"], "a": ids["inner"], "b": ids["inner"]])
  }

  @Test func aDependencyThatIsNamedTwiceShowsOnce() {
    let (a, b) = (note("a"), note("b"))
    b.addDependency(a)
    b.addDependency(a)
    #expect(OperationGraph([b, b, a]).nodes.map(\.dependencies) == [[1], []])
  }

  @Test func aMemberBringsTheGroupItWaitsForButNotItsSiblings() {
    let (member, sibling, outside) = (note("member"), note("sibling"), note("outside"))
    let group = GroupOperation([member, sibling]).named("group")
    member ==> outside
    let graph = OperationGraph([outside])
    #expect(graph.nodes.map(\.name) == ["outside", "member", "group"])
    #expect(graph.nodes[1].group == 2)
    #expect(OperationGraph([outside, group]).nodes.map(\.name).sorted() == ["group", "member", "outside", "sibling"])
  }

  @Test func aGroupThatIsFoundByItsMemberFirstComesWithAllOfThem() {
    let (member, sibling, outside) = (note("member"), note("sibling"), note("outside"))
    let group = GroupOperation([member, sibling]).named("group")
    member ==> outside
    let (a, b, c) = (note("a"), note("b"), note("c"))
    group ==> a ==> b ==> c
    #expect(OperationGraph([outside, c]).nodes.contains { $0.name == "sibling" })
  }

  @Test func plainOperationsAreAsGoodAsOurs() {
    let (a, b) = (plain("a", journal), plain("b", journal))
    b.addDependency(a)
    let graph = OperationGraph([b])
    #expect(graph.nodes.map(\.name) == ["b", "a"])
    #expect(graph.nodes[0].dependencies == [1])
  }

  @Test func statesAreThoseOfTheMoment() async throws {
    let held = HeldOperation().named("executing")
    let (failed, cancelled, pending) = (
      NoteOperation("failed", journal, failing: TestError("no")), note("cancelled"), note("pending")
    )
    let finished = plain("finished", journal)
    let queue = OperationQueue()
    cancelled.cancel()
    queue.addOperations([held, failed, finished] as [Operation])
    await held.begun.opened()
    await failed.finished()
    await finished.finished()
    let graph = OperationGraph([held, failed, cancelled, pending, finished])
    #expect(graph.nodes.map(\.state.rawValue) == graph.nodes.map(\.name))
    held.gate.open()
    await queue.finished()
  }

  @Test func whatARetryTriesIsInsideIt() async throws {
    let attempt = HeldResult().named("attempt")
    let retry = RetryOperation(attempts: 2) { _ in attempt }.named("retry")
    let queue = OperationQueue()
    queue.addOperation(retry)
    await attempt.begun.opened()
    let graph = OperationGraph([retry])
    #expect(graph.nodes.map(\.name) == ["retry", "attempt"])
    #expect(graph.nodes[1].group == 0)
    attempt.finish(returning: 1)
    try await retry.completed()
  }

  // MARK: Cycles

  @Test func aCycleIsNamedInTheOrderOfWaiting() {
    let (a, b, c) = (note("a"), note("b"), note("c"))
    a ==> b ==> c ==> a
    #expect(OperationGraph([a]).cycle == ["a", "c", "b"])
    a.removeDependency(c)
    #expect(OperationGraph([a, b, c]).cycle == nil)
  }

  @Test func aMemberThatWaitsForItsGroupIsACycle() {
    let member = note("member")
    let group = GroupOperation([member]).named("group")
    group ==> member
    #expect(OperationGraph([group]).cycle.map(Set.init) == ["group", "member"])
    #expect(OperationGraph([group]).cycle?.count == 2)
    member.removeDependency(group)
  }

  @Test func aGroupThatWaitsForItsMemberIsACycle() {
    let member = note("member")
    let group = GroupOperation([member]).named("group")
    member ==> group
    #expect(OperationGraph([group]).cycle.map(Set.init) == ["group", "member"])
    group.removeDependency(member)
  }

  @Test func aCycleOfAGroupIsToldWithoutItsMembers() {
    let (member, other) = (note("member"), note("other"))
    let group = GroupOperation([member]).named("group")
    group ==> other ==> group
    #expect(OperationGraph([group]).cycle?.sorted() == ["group", "other"])
    group.removeDependency(other)
  }

  @Test func groupsThatWaitForEachOthersMembersAreACycle() {
    let (a, b) = (note("a"), note("b"))
    let (first, second) = (GroupOperation([a]).named("first"), GroupOperation([b]).named("second"))
    second ==> a
    first ==> b
    #expect(OperationGraph([first]).cycle.map(Set.init) == ["first", "a", "second", "b"])
    a.removeDependency(second)
  }

  @Test func aSharedDependencyIsNoCycle() {
    let (a, b, c, d) = (note("a"), note("b"), note("c"), note("d"))
    a ==> [b, c] ==> d
    #expect(OperationGraph([d]).cycle == nil)
  }

  // MARK: The critical path

  @Test func theCriticalPathIsTheLongestWayThrough() {
    let (load, parse, index, store) = (note("load"), note("parse"), note("index"), note("store"))
    load ==> [parse, index] ==> store
    let durations: [String: Duration] = [
      "load": .seconds(3), "parse": .seconds(1), "index": .seconds(4), "store": .seconds(2),
    ]
    let graph = OperationGraph([store])
    #expect(graph.criticalPath == nil)
    let path = graph.withDurations { durations[$0.name] }.criticalPath
    #expect(path?.names == ["load", "index", "store"])
    #expect(path?.duration == .seconds(9))
    #expect(path?.description == "9 s: load → index → store")
  }

  @Test func aGroupTakesAsLongAsItsMembers() {
    let (before, a, b, after) = (note("before"), note("a"), note("b"), note("after"))
    let group = GroupOperation("group") { a ==> b }
    before ==> group ==> after
    let graph = OperationGraph([after]).withDurations { $0.isGroup ? .seconds(100) : .seconds(1) }
    #expect(graph.criticalPath?.names == ["before", "a", "b", "after"])
    #expect(graph.criticalPath?.duration == .seconds(4))
  }

  @Test func aLongCriticalPathIsToldInFewNames() {
    let operations = (1...100).map { note("\($0)") }
    for (before, after) in zip(operations, operations.dropFirst()) { before ==> after }
    let path = OperationGraph([operations[99]]).withDurations { _ in .seconds(1) }.criticalPath
    #expect(path?.names.count == 100)
    #expect(path?.description == "100 s: 1 → 2 → 3 → 4 → 5 → 6 → … 92 more … → 99 → 100")
  }

  @Test func aCycleHasNoCriticalPath() {
    let (a, b) = (note("a"), note("b"))
    a ==> b ==> a
    #expect(OperationGraph([a]).withDurations { _ in .seconds(1) }.criticalPath == nil)
    a.removeDependency(b)
  }
}

/// Tells when it has begun, and finishes when it is told to.
private final class HeldResult: ResultOperation<Int>, @unchecked Sendable {
  let begun = Gate()

  override func execute() { begun.open() }
}
