import Foundation
import Testing

@testable import Operations

@Suite(.timeLimit(.minutes(5)))
struct GraphDrawingTests {
  /// The names that are shown as they are.
  private static let names = HostileNameTests.names.filter {
    !$0.isEmpty && $0.utf8.count < 2000 && $0 == $0.inOneLine
  }

  // MARK: Shapes

  /// A group of a and b, and c, which waits for it.
  @Test func groupsAreSubgraphsOrClusters_andStatesAreColours() {
    let c = GroupOperation("Import") { operation("a") ==> operation("b") } ==> operation("c")
    c.cancel()
    let graph = OperationGraph([c])
    #expect(
      graph.mermaid() == """
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
    let text = graph.dot()
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

  @Test(arguments: [["s0", "n1"], ["n1", "s0"]])
  func anArrowBetweenAGroupAndItsMember_endsBesideTheGroup(ends: [String]) {
    let member = operation("member")
    let group = GroupOperation([member]).named("group")
    if ends[0] == "s0" { group ==> member } else { member ==> group }
    let graph = OperationGraph([group])
    #expect(graph.mermaid().contains(#"s0(["group"]):::pending"#))
    #expect(graph.mermaid().contains(ends.joined(separator: " --> ")))
    #expect(graph.dot().contains(ends.joined(separator: " -> ")))
    untie([group, member])
  }

  // MARK: Labels

  @Test func durationsAreBelowTheName_andSoAreItsOtherLines() {
    let group = GroupOperation([operation("a\tb\nc")]).named("group")
    let graph = OperationGraph([group]).withDurations { _ in .milliseconds(1500) }
    #expect(graph.mermaid().contains(#"subgraph n0["group, 1#46;5 s"]"#))
    #expect(graph.mermaid().contains(#"["a b<br/>c<br/>1#46;5 s"]:::pending"#))
    #expect(graph.dot().contains(#"label="a b\nc\n1.5 s""#))
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

  /// Some are invalid in SVG, which Graphviz writes, and others end a line.
  @Test(arguments: ["\u{FFFE}", "\u{FFFF}", "\u{1}", "\u{1B}", "\0", "\r", "\u{85}", "\u{2028}"] as [Unicode.Scalar])
  func aControlCharacter_isInNoDrawing(character: Unicode.Scalar) {
    let graph = OperationGraph([operation("a\(character)b")])
    #expect(!graph.dot().unicodeScalars.contains(character))
    #expect(!graph.mermaid().unicodeScalars.contains(character))
  }

  // MARK: Graphviz

  /// Graphviz reads no string of more than 16,384 bytes, unless it is made of several, joined by `+`.
  @Test(arguments: ["x", "漢", "&", "\"", "👩‍👩‍👧‍👦"]) func graphvizTakesALongName(character: String) {
    let dot = OperationGraph([operation(String(repeating: character, count: 10_000))]).dot()
    let literals = dot.matches(of: /"((?:[^"\\]|\\.)*)"/).map { $0.1.replacing(/\\(.)/, with: "x").utf8.count }
    #expect(literals.max()! < 16_384)
  }

  @Test(.enabled(if: Graphviz.isInstalled, "Graphviz is not installed"))
  func graphvizDrawsANameAsItIs_andArrowsBetweenAGroupAndItsMembers() async throws {
    let (member, other) = (operation("member"), operation(#"back\slash \n \N \G "q" & <b>"#))
    let outer = GroupOperation([GroupOperation([member]).named("inner"), other]).named("outer")
    outer ==> member
    other ==> outer
    let drawn = try await Graphviz.svg(of: OperationGraph([outer]))
    #expect(drawn.hasPrefix("<?xml"), "Graphviz complains: \(drawn)")
    #expect(drawn.contains(#">back\slash \n \N \G &quot;q&quot; &amp; &lt;b&gt;<"#), "\(drawn)")
    #expect(drawn.components(separatedBy: "class=\"edge\"").count == 3)
    untie([member, outer])
  }
}

private enum Graphviz {
  static let isInstalled = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
    .contains { FileManager.default.isExecutableFile(atPath: "\($0)/dot") }

  /// Returns the picture that Graphviz draws. It goes through a file, because a pipe may be full before it is read.
  ///
  /// Runs in the shell, because Foundation's `Process` is never released on Linux (Swift 6.3.1).
  static func svg(of graph: OperationGraph) async throws -> String {
    let path = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString).path
    defer { for suffix in ["", ".svg"] { try? FileManager.default.removeItem(atPath: path + suffix) } }
    try Data(graph.dot().utf8).write(to: URL(filePath: path))
    let command = "dot -Tsvg '\(path)' > '\(path).svg' 2>&1"
    // It waits for the end, on a thread of its own.
    _ = await onThread { if let shell = unsafe popen(command, "r") { unsafe pclose(shell) } }
    return try String(contentsOfFile: path + ".svg", encoding: .utf8)
  }
}
