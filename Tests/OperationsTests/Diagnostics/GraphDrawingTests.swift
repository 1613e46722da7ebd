import Foundation
import Operations
import OperationsTestSupport
import Soak
import Testing

@Suite(.timeLimit(.minutes(5)))
struct GraphDrawingTests {
  /// Names with a meaning in Mermaid, Markdown, HTML or Graphviz, and others.
  private static let names = [
    "\"quoted\"", "'single'", "`code`", "<b>bold</b>", "&amp;", "&", "#35;", "#quot;", "#", "a\\nb", "\\", "trail\\",
    "end", "END", "subgraph", "subgraph x", "graph TD", "click", "default", "style", "%%{init}%%",
    "%%{init: {'theme':'dark'}}%%", "classDef x fill:red;", "a --> b", "a-->|x|b", "a;b", "a{b}", "a[b]", "a(b)",
    "(((x)))", "1. item", "- item", "* item", "# heading", "> quote", "**bold**", "_em_", "![x](y)",
    "[a](javascript:alert(1))", "<script>alert(1)</script>", "http://example.com", "$$x^2$$", "---", "|",
    "a@{shape: cloud}", "fa:fa-car", ":::x", "漢字", "한국어", "שלום", "👩‍👩‍👧‍👦", "e\u{301}", "%s", "\\N \\G \\L",
    "{a|b|<p>c}", "&lt;", "&bogus;", "digraph{}", "0", "-1", "“”", "<!-- c -->", "]]>", " ", "🍏 日本語 مرحبا",
  ]

  /// A group of a and b, and c, which waits for it.
  private func importer() -> OperationGraph {
    let c = GroupOperation("Import") { operation("a") ==> operation("b") } ==> operation("c")
    c.cancel()
    return OperationGraph([c])
  }

  // MARK: Shapes

  @Test func mermaidDrawsGroupsAsSubgraphsAndStatesAsColours() {
    #expect(
      importer().mermaid() == """
        flowchart LR
          n0["c"]:::cancelled
          subgraph n1["Import"]
            direction LR
            n2["a"]:::pending
            n3["b"]:::pending
          end
          n1 --> n0
          n2 --> n3
          classDef pending fill:#f3f4f6,stroke:#6b7280,color:#111827
          classDef cancelled fill:#e5e7eb,stroke:#9ca3af,color:#111827,stroke-dasharray:4 2
          class n1 pending

        """
    )
  }

  @Test func dotDrawsGroupsAsClustersAndArrowsUpToThem() {
    let text = importer().dot()
    #expect(text.contains("subgraph cluster_1 {\n    label=\"Import\""))
    #expect(text.contains("n3 -> n0 [ltail=cluster_1]") && text.contains("n2 -> n3\n"))
  }

  @Test func aCycleIsRed() {
    let (a, b, c) = (operation("a"), operation("b"), operation("c"))
    c ==> a ==> b ==> a
    let graph = OperationGraph([a])
    #expect(graph.mermaid().contains("linkStyle 1,2 stroke:#dc2626"))
    #expect(graph.dot().components(separatedBy: "penwidth=3").count == 3)
    a.removeDependency(b)
  }

  @Test func anArrowBetweenAGroupAndItsMember_endsBesideTheGroup() {
    let member = operation("member")
    let group = GroupOperation([member]).named("group")
    group ==> member
    let graph = OperationGraph([group])
    #expect(graph.mermaid().contains(#"s0(["group"]):::pending"#) && graph.mermaid().contains("s0 --> n1"))
    #expect(graph.dot().contains("s0 -> n1"))
    member.removeDependency(group)
    member ==> group
    let opposite = OperationGraph([group])
    #expect(opposite.mermaid().contains(#"s0(["group"]):::pending"#) && opposite.mermaid().contains("n1 --> s0"))
    #expect(opposite.dot().contains("n1 -> s0"))
    group.removeDependency(member)
  }

  @Test(arguments: 1...20) func everyArrow_isDrawnOnce(seed: Int) {
    var random = SeededGenerator(seed: UInt64(seed))
    let all = (0..<15).map { [GroupOperation([]), AsyncOperation(), Operation()][$0 % 3] }
    // A member comes after its group, so no group is inside itself.
    for index in 3..<15 where Bool.random(using: &random) {
      let groups = all.prefix(index).compactMap { $0 as? GroupOperation }
      groups.randomElement(using: &random)!.addOperation(all[index])
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

  // MARK: Labels

  @Test func durationsAreBelowTheName() {
    let group = GroupOperation([operation("a")]).named("group")
    let graph = OperationGraph([group]).withDurations { _ in .milliseconds(1500) }
    #expect(graph.mermaid().contains(#"subgraph n0["group, 1#46;5 s"]"#))
    #expect(graph.mermaid().contains(#"["a<br/>1#46;5 s"]:::pending"#))
    #expect(graph.dot().contains(#"label="a\n1.5 s""#))
  }

  @Test func mermaidLabels_areEscapedAndReadAsTheName() {
    let labels = OperationGraph(Self.names.map(operation)).mermaid().matches(of: /(?m)^ *n[0-9]+\["(.*)"\]/)
    #expect(labels.count == Self.names.count)
    for (label, name) in zip(labels.map { String($0.1) }, Self.names) {
      let bare = label.replacing(/#[0-9]+;/, with: "")
      #expect(!bare.contains { $0.isASCII && !$0.isLetter && !$0.isNumber && $0 != " " && $0 != "," }, "\(label)")
      #expect(label.replacing(/#([0-9]+);/) { String(Character(Unicode.Scalar(UInt32($0.1)!)!)) } == name)
    }
  }

  @Test func dotShowsEveryNameAsItIs() {
    let dot = OperationGraph(Self.names.map(operation)).dot()
    let labels = dot.matches(of: /(?m)^ *n[0-9]+ \[label="((?:[^"\\]|\\.)*)"/).map { String($0.1) }
    #expect(labels.count == Self.names.count)
    for (label, name) in zip(labels, Self.names) {
      #expect(label.replacing(/\\(.)/) { String($0.1) }.replacing("&amp;", with: "&") == name)
    }
  }

  /// Graphviz writes SVG, in which they are invalid.
  @Test(arguments: ["\u{FFFE}", "\u{FFFF}", "\u{1}", "\u{1B}[31m"]) func whatXMLForbids_isInNoDrawing(name: String) {
    let graph = OperationGraph([operation("a" + name)])
    #expect(!graph.dot().unicodeScalars.contains(name.unicodeScalars.first!))
    #expect(!graph.mermaid().unicodeScalars.contains(name.unicodeScalars.first!))
  }

  // MARK: Graphviz

  /// Graphviz reads no string of more than 16,384 bytes, unless it is made of several, joined by `+`.
  @Test(arguments: ["x", "漢", "&", "\"", "👩‍👩‍👧‍👦"]) func graphvizTakesALongName(character: String) {
    let dot = OperationGraph([operation(String(repeating: character, count: 10_000))]).dot()
    let literals = dot.matches(of: /"((?:[^"\\]|\\.)*)"/).map { $0.1.replacing(/\\(.)/, with: "x").utf8.count }
    #expect(literals.max()! < 16_384)
  }

  @Test(.enabled(if: Tool.dot != nil, "Graphviz is not installed"))
  func graphvizReadsEveryNameAsItIs() async throws {
    let names = [
      #"a "quoted" name"#, "<b>bold</b> &amp; & &lt;", "#35; #quot;", "two\nlines", "end", "%%{init: {}}%%",
      "[x] {y} (z) | ; : `code`", "1. first", "🍏 日本語 مرحبا", "subgraph x", "classDef a fill:red;", " ",
    ]
    let members = names.map(operation)
    chain(members)
    let graph = OperationGraph(members + names.map { GroupOperation([operation($0)]).named($0) })
    let drawn = try #require(try await Tool.dot?.run(["-Tjson0"], graph.dot()))
    #expect(drawn.errors == "")
    let json = try #require(try JSONSerialization.jsonObject(with: Data(drawn.output.utf8)) as? [String: Any])
    // As Graphviz keeps them: escapes and entities are resolved when it draws.
    let labels = try #require(json["objects"] as? [[String: Any]]).compactMap { $0["label"] as? String }
      .map { $0.replacing("\\n", with: "\n").replacing("&amp;", with: "&") }
    for name in names { #expect(labels.count { $0 == name } == 3, "\(name): \(labels)") }
    #expect((json["edges"] as? [Any])?.count == names.count - 1)
  }

  @Test(.enabled(if: Tool.dot != nil, "Graphviz is not installed"))
  func graphvizDrawsANameAsItIs_andArrowsBetweenAGroupAndItsMembers() async throws {
    let (member, other) = (operation("member"), operation(#"back\slash \n \N \G "q" & <b>"#))
    let outer = GroupOperation([GroupOperation([member]).named("inner"), other]).named("outer")
    outer ==> member
    other ==> outer
    let drawn = try #require(try await Tool.dot?.run(["-Tsvg"], OperationGraph([outer]).dot()))
    #expect(drawn.errors == "")
    #expect(drawn.output.contains(#">back\slash \n \N \G &quot;q&quot; &amp; &lt;b&gt;<"#), "\(drawn.output)")
    #expect(drawn.output.components(separatedBy: "class=\"edge\"").count == 3)
    untie([member, outer])
  }
}

/// A program of the system, if it is installed.
private struct Tool: Sendable {
  /// Graphviz's.
  static let dot = Tool("dot")

  private let path: String

  private init?(_ name: String) {
    let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
    let paths = folders.map { "\($0)/\(name)" }
    guard let path = paths.first(where: { FileManager.default.isExecutableFile(atPath: $0) }) else { return nil }
    self.path = path
  }

  /// What the program prints when it is given `input`. It goes through files: a pipe may be full before it is read.
  ///
  /// Runs in the shell, because Foundation's `Process` is never released on Linux (Swift 6.3.1).
  func run(_ arguments: [String], _ input: String) async throws -> (output: String, errors: String) {
    let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let files = ["input", "output", "errors"].map { folder.appending(path: $0) }
    try Data(input.utf8).write(to: files[0])
    let words = [path] + arguments + ["<", files[0].path, ">", files[1].path, "2>", files[2].path]
    let command = words.map { ["<", ">", "2>"].contains($0) ? $0 : "'\($0)'" }.joined(separator: " ")
    // It waits for the end, on a thread of its own.
    _ = await onThread { if let shell = unsafe popen(command, "r") { unsafe pclose(shell) } }
    // `Data(contentsOf:)` also leaks a page if the file is empty.
    let printed = try files.dropFirst().map { try FileHandle(forReadingFrom: $0).readToEnd() ?? Data() }
    return (String(decoding: printed[0], as: UTF8.self), String(decoding: printed[1], as: UTF8.self))
  }
}
