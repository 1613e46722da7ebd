import Foundation
import Operations
import OperationsTestSupport
import Soak
import Testing

/// What an `OperationGraph` promises, from its interface alone.
@Suite(.timeLimit(.minutes(5)))
struct GraphContractTests {
  /// Names that mean something to Mermaid, Markdown, HTML, Graphviz or nobody.
  static let hostileNames = [
    "\"quoted\"", "'single'", "`code`", "<b>bold</b>", "&amp;", "&", "#35;", "#quot;", "#", "a\\nb", "\\", "trail\\",
    "end",
    "END", "subgraph", "subgraph x", "graph TD", "click", "default", "style", "%%{init}%%",
    "%%{init: {'theme':'dark'}}%%",
    "classDef x fill:red;", "a --> b", "a-->|x|b", "a;b", "a{b}", "a[b]", "a(b)", "(((x)))", "1. item", "- item",
    "* item",
    "# heading", "> quote", "**bold**", "_em_", "![x](y)", "[a](javascript:alert(1))", "<script>alert(1)</script>",
    "http://example.com", "$$x^2$$", "---", "|", "a@{shape: cloud}", "fa:fa-car", ":::x", "漢字", "한국어", "שלום", "👩‍👩‍👧‍👦",
    "e\u{301}", "%s", "\\N \\G \\L", "{a|b|<p>c}", "&lt;", "&bogus;", "digraph{}", "0", "-1", "“”", "<!-- c -->", "]]>",
  ]

  private func chain(_ operations: [Operation]) { for (a, b) in zip(operations, operations.dropFirst()) { a ==> b } }

  /// So that no cycle keeps itself alive.
  private func untie(_ operations: [Operation]) {
    for operation in operations { for other in operation.dependencies { operation.removeDependency(other) } }
  }

  private func index(_ name: String, in graph: OperationGraph) throws -> Int {
    try #require(graph.nodes.firstIndex { $0.name == name })
  }

  // MARK: What is in it

  @Test func nothingIsAnEmptyGraph() {
    let graph = OperationGraph([])
    #expect(graph.nodes.isEmpty && graph.cycle == nil && graph.criticalPath == nil)
    #expect(graph.mermaid().hasPrefix("flowchart") && graph.dot().hasPrefix("digraph"))
  }

  @Test func plainOperationsAreAsGoodAsOurs() throws {
    let (a, b, c) = (BlockOperation {}.named("a"), AsyncOperation().named("b"), Operation())
    a ==> b ==> c
    let graph = OperationGraph([c])
    #expect(graph.nodes.map(\.name) == ["Operation", "b", "a"])
    #expect(graph.nodes.map(\.dependencies) == [[1], [2], []])
    #expect(graph.nodes.map(\.id) == [0, 1, 2] && graph.nodes.allSatisfy { $0.state == .pending && !$0.isGroup })
  }

  @Test func anEmptyNameIsNoName() {
    #expect(OperationGraph([AsyncOperation().named("")]).nodes[0].name == "AsyncOperation")
  }

  @Test func whatWaitsForItIsNotTakenIn() {
    let (a, b) = (Operation().named("a"), Operation().named("b"))
    a ==> b
    #expect(OperationGraph([a]).nodes.map(\.name) == ["a"])
  }

  @Test func givenOnesComeFirstAndEachOnce() {
    let (a, b, c) = (Operation().named("a"), Operation().named("b"), Operation().named("c"))
    [a, b] ==> c
    #expect(OperationGraph([c, b, c, a, b]).nodes.map(\.name) == ["c", "b", "a"])
  }

  @Test func membersAreNestedHoweverDeep() throws {
    let leaf = BlockOperation {}.named("leaf")
    let inner = GroupOperation([leaf, AsyncOperation().named("sibling")]).named("inner")
    let outer = GroupOperation([inner, GroupOperation().named("empty")]).named("outer")
    let graph = OperationGraph([outer])
    #expect(Set(graph.nodes.map(\.name)) == ["outer", "inner", "empty", "leaf", "sibling"])
    #expect(try graph.nodes[index("leaf", in: graph)].group == index("inner", in: graph))
    #expect(try graph.nodes[index("inner", in: graph)].group == index("outer", in: graph))
    #expect(try graph.nodes[index("outer", in: graph)].group == nil)
    #expect(Set(graph.nodes.filter(\.isGroup).map(\.name)) == ["outer", "inner", "empty"])
  }

  @Test func aMemberComesWithItsGroupButWithoutItsSiblings() throws {
    let (member, other) = (AsyncOperation().named("member"), AsyncOperation().named("other"))
    let group = GroupOperation([member, other]).named("group")
    let last = AsyncOperation().named("last")
    member ==> last
    let graph = OperationGraph([last])
    #expect(Set(graph.nodes.map(\.name)) == ["last", "member", "group"])
    #expect(try graph.nodes[index("member", in: graph)].group == index("group", in: graph))
    _ = group
  }

  @Test func whatIsWaitedForTwiceIsWaitedForOnce() {
    let (a, b) = (AsyncOperation().named("a"), AsyncOperation().named("b"))
    a ==> b
    a ==> b
    #expect(OperationGraph([b]).nodes[0].dependencies == [1])
  }

  @Test func everyStateIsSeenAndHasAColour() async {
    let queue = OperationQueue()
    let held = HeldOperation().named("executing")
    let done = AsyncOperation().named("finished")
    let failed = NoteOperation("failed", Journal(), failing: TestError("no"))
    let cancelled = AsyncOperation().named("cancelled")
    cancelled.cancel()
    queue.addOperations([held, done, failed, cancelled])
    for operation in [done, failed, cancelled] { await operation.finished() }
    await held.begun.opened()
    let graph = OperationGraph([AsyncOperation().named("pending"), held, done, failed, cancelled])
    #expect(graph.nodes.map(\.state.rawValue) == graph.nodes.map(\.name))
    for state in OperationGraph.Node.State.allCases { #expect(graph.mermaid().contains("classDef \(state.rawValue) ")) }
    let colours = graph.dot().matches(of: /fillcolor="(#[0-9a-f]+)"/).map(\.1)
    #expect(Set(colours).count == 5)
    held.gate.open()
    await held.finished()
  }

  // MARK: Cycles

  @Test func aCycleNamesThoseInItInOrderAndNobodyElse() throws {
    let names = ["a", "b", "c", "d", "e"]
    let ring: [Operation] = names.map { $0 == "b" ? Operation().named($0) : AsyncOperation().named($0) }
    chain(ring)
    ring[4] ==> ring[0]
    let (before, after) = (Operation().named("before"), Operation().named("after"))
    before ==> ring[2]
    ring[3] ==> after
    let graph = OperationGraph([after])
    let cycle = try #require(graph.cycle)
    #expect(cycle.count == 5 && Set(cycle) == Set(names))
    for (position, name) in cycle.enumerated() {
      let next = try index(cycle[(position + 1) % 5], in: graph)
      #expect(try graph.nodes[index(name, in: graph)].dependencies.contains(next), "\(cycle)")
    }
    #expect(graph.criticalPath == nil && graph.withDurations { _ in .seconds(1) }.criticalPath == nil)
    untie(ring)
  }

  @Test func aGroupWaitsForItsMembersAndTheyForItsBeginning() {
    let member = AsyncOperation().named("member")
    let group = GroupOperation([member]).named("group")
    #expect(OperationGraph([group]).cycle == nil)
    group ==> member
    #expect(OperationGraph([group]).cycle.map(Set.init) == ["group", "member"])
    member.removeDependency(group)
    let outside = AsyncOperation().named("outside")
    member ==> outside ==> group
    #expect(OperationGraph([outside]).cycle.map(Set.init) == ["group", "member", "outside"])
    untie([group])
    #expect(OperationGraph([group, outside]).cycle == nil)
  }

  @Test func membersThatWaitForSiblingsOrCousinsAreNoCycle() {
    let (a, b, c) = (Operation().named("a"), Operation().named("b"), Operation().named("c"))
    let (first, second) = (GroupOperation([a, b]), GroupOperation([c]))
    a ==> b ==> c
    #expect(OperationGraph([first, second]).cycle == nil)
    c ==> first
    #expect(OperationGraph([first, second]).cycle != nil, "first waits for c, c for b, b for first to begin")
    untie([a, b, c, first])
  }

  // MARK: Large ones

  /// 100,000 of ours: fewer plain ones, of which Foundation makes more work.
  @Test(arguments: [(false, 100_000), (true, 20_000)]) func aLongChain(isPlain: Bool, count: Int) {
    let operations: [Operation] = (0..<count).map { _ in isPlain ? Operation() : AsyncOperation() }
    chain(operations)
    let graph = OperationGraph([operations[count - 1]]).withDurations { _ in .milliseconds(1) }
    #expect(graph.nodes.count == count && graph.cycle == nil)
    #expect(graph.criticalPath?.duration == .milliseconds(count) && graph.criticalPath?.names.count == count)
    #expect(graph.dot().utf8.count > 10 * count && graph.mermaid().utf8.count > 10 * count)
    operations[count - 1] ==> operations[0]
    #expect(OperationGraph([operations[5]]).cycle?.count == count)
    untie(operations)
  }

  @Test func aFanOf20000() {
    let (first, last) = (AsyncOperation(), AsyncOperation())
    let operations = (0..<20_000).map { _ in AsyncOperation() }
    first ==> operations ==> last
    let graph = OperationGraph([last]).withDurations { _ in .seconds(1) }
    #expect(graph.nodes.count == 20_002 && graph.criticalPath?.duration == .seconds(3))
    #expect(graph.dot().split(separator: "->").count == 40_001)
  }

  @Test func groupsNested8000Deep() {
    var operation: Operation = Operation().named("leaf")
    for _ in 0..<8000 { operation = GroupOperation([operation]) }
    let graph = OperationGraph([operation]).withDurations { _ in .seconds(1) }
    #expect(graph.nodes.count == 8001 && graph.cycle == nil && graph.criticalPath?.names == ["leaf"])
    #expect(graph.mermaid().components(separatedBy: "subgraph ").count == 8001)
    #expect(graph.dot().components(separatedBy: "subgraph ").count == 8001)
  }

  // MARK: The critical path

  @Test func durationsThatAreNotKnownCountAsNothing() {
    let operations = ["a", "b", "c"].map { Operation().named($0) }
    chain(operations)
    let graph = OperationGraph([operations[2]])
    #expect(graph.criticalPath == nil && graph.withDurations { _ in nil }.criticalPath == nil)
    let path = graph.withDurations { $0.name == "b" ? .seconds(2) : nil }.criticalPath
    #expect(path?.duration == .seconds(2) && path?.names.contains("b") == true)
  }

  @Test func theLongestWayThrough() {
    let (a, b, c, d) = (Operation().named("a"), Operation().named("b"), Operation().named("c"), Operation().named("d"))
    a ==> [b, c] ==> d
    let graph = OperationGraph([d]).withDurations { .seconds($0.name == "c" ? 5 : 1) }
    #expect(graph.criticalPath?.names == ["a", "c", "d"] && graph.criticalPath?.duration == .seconds(7))
    #expect(graph.criticalPath.map { "\($0)" }?.contains("a → c → d") == true)
  }

  @Test func aGroupTakesAsLongAsItsMembersDo() {
    let (x, y) = (Operation().named("x"), Operation().named("y"))
    x ==> y
    let group = GroupOperation([x, y]).named("group")
    let (before, after) = (Operation().named("before"), Operation().named("after"))
    before ==> group ==> after
    let graph = OperationGraph([after]).withDurations { .seconds($0.isGroup ? 100 : 1) }
    #expect(graph.criticalPath?.names == ["before", "x", "y", "after"] && graph.criticalPath?.duration == .seconds(4))
    let empty = OperationGraph([GroupOperation().named("empty")]).withDurations { _ in .seconds(3) }
    #expect(empty.criticalPath?.names == ["empty"] && empty.criticalPath?.duration == .seconds(3))
  }

  @Test(arguments: 1...30) func ofRandomGraphsItIsTheLongest(seed: Int) {
    var random = SeededGenerator(seed: UInt64(seed))
    let operations = (0..<40).map { Operation().named("\($0)") }
    let seconds = operations.map { _ in Int.random(in: 0...9, using: &random) }
    var ends: [Int] = []
    for (index, operation) in operations.enumerated() {
      var start = 0
      for other in 0..<index where Int.random(in: 0..<8, using: &random) == 0 {
        operations[other] ==> operation
        start = max(start, ends[other])
      }
      ends.append(start + seconds[index])
    }
    let graph = OperationGraph(operations.shuffled(using: &random)).withDurations { .seconds(seconds[Int($0.name)!]) }
    #expect(graph.criticalPath?.duration == .seconds(ends.max()!))
    #expect(graph.criticalPath?.names.reduce(0) { $0 + seconds[Int($1)!] } == ends.max()!)
  }

  // MARK: Drawings

  @Test func mermaidShowsEveryNameAsItIs() {
    let graph = OperationGraph(Self.hostileNames.map { AsyncOperation().named($0) })
    let labels = graph.mermaid().matches(of: /(?m)^ *n[0-9]+\["(.*)"\]/).map { String($0.1) }
    #expect(labels.count == Self.hostileNames.count)
    for (label, name) in zip(labels, Self.hostileNames) {
      #expect(!label.contains("\"") && !label.contains("<"), "\(label)")
      let shown = label.replacing(/#([0-9]+);/) { String(Character(Unicode.Scalar(UInt32($0.1)!)!)) }
      #expect(shown == name)
    }
  }

  @Test func dotShowsEveryNameAsItIs() {
    let graph = OperationGraph(Self.hostileNames.map { AsyncOperation().named($0) })
    let labels = graph.dot().matches(of: /(?m)^ *n[0-9]+ \[label="((?:[^"\\]|\\.)*)"/).map { String($0.1) }
    #expect(labels.count == Self.hostileNames.count)
    for (label, name) in zip(labels, Self.hostileNames) {
      let shown = label.replacing(/\\(.)/) { String($0.1) }.replacing("&amp;", with: "&")
      #expect(shown == name)
    }
  }

  @Test func aNameInSeveralLinesStaysOneLabel() {
    let graph = OperationGraph([AsyncOperation().named("a\nb\r\nc\u{2028}d\te\0f")])
    #expect(graph.mermaid().components(separatedBy: .newlines).filter { $0.contains("n0[") }.count == 1)
    #expect(graph.dot().components(separatedBy: "\n").filter { $0.contains("n0 [") && $0.hasSuffix("]") }.count == 1)
    #expect(!graph.mermaid().contains("\0") && !graph.dot().contains("\0"))
  }

  /// Graphviz reads no string of more than 16,384 bytes, unless it is made of several, joined by `+`.
  @Test(arguments: ["x", "漢", "&", "\"", "👩‍👩‍👧‍👦"]) func graphvizTakesALongName(character: String) {
    let dot = OperationGraph([AsyncOperation().named(String(repeating: character, count: 10_000))]).dot()
    let literals = dot.matches(of: /"((?:[^"\\]|\\.)*)"/).map { $0.1.replacing(/\\(.)/, with: "x").utf8.count }
    #expect(literals.max()! < 16_384)
  }

  /// They may be in no XML, and Graphviz writes SVG.
  @Test(arguments: ["\u{FFFE}", "\u{FFFF}", "\u{1}", "\u{1B}[31m"]) func whatXMLForbidsIsInNoDrawing(name: String) {
    let graph = OperationGraph([AsyncOperation().named("a" + name)])
    #expect(!graph.dot().unicodeScalars.contains(name.unicodeScalars.first!))
    #expect(!graph.mermaid().unicodeScalars.contains(name.unicodeScalars.first!))
  }

  @Test(arguments: 1...20) func everyArrowIsDrawnOnce(seed: Int) {
    var random = SeededGenerator(seed: UInt64(seed))
    var all: [Operation] = []
    for index in 0..<15 {
      guard Int.random(in: 0..<3, using: &random) == 0 else {
        all.append((Bool.random(using: &random) ? AsyncOperation() : Operation()).named("o\(index)"))
        continue
      }
      let free = all.filter { member in !all.contains { ($0 as? GroupOperation)?.operations.contains(member) == true } }
      all.append(GroupOperation(Array(free.shuffled(using: &random).prefix(3))).named("g\(index)"))
    }
    for _ in 0..<20 {
      let (a, b) = (all.randomElement(using: &random)!, all.randomElement(using: &random)!)
      if a !== b { a ==> b }
    }
    let graph = OperationGraph(all)
    let arrows = graph.nodes.reduce(0) { $0 + $1.dependencies.count }
    #expect(graph.mermaid().matches(of: /(?m)^ *[ns][0-9]+ --> [ns][0-9]+$/).count == arrows)
    #expect(graph.dot().matches(of: /(?m)^ *[ns][0-9]+ -> [ns][0-9]+/).count == arrows)
    untie(all)
  }

  // MARK: Taking it

  @Test func takingItChangesNothingHoweverOften() async {
    let journal = Journal<String>()
    let operations = (0..<2000).map { NoteOperation("\($0)", journal) }
    chain(operations)
    let group = GroupOperation(operations).named("group")
    let finished = Gate()
    let queue = OperationQueue()
    async let asking = onThread {
      while !finished.isOpen {
        let graph = OperationGraph([group])
        #expect(graph.cycle == nil)
      }
    }
    queue.addOperation(group)
    await group.finished()
    finished.open()
    _ = await asking
    #expect(journal.entries == (0..<2000).map(String.init) && group.isSuccessful)
  }

  @Test func itKeepsNoOperationAlive() async {
    let live = LiveCount()
    let graph = OperationGraph([CountedGroup(live, [AsyncOperation()])])
    await live.none()
    #expect(graph.nodes.count == 2)
  }
}
