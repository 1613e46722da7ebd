import Foundation
import Operations
import OperationsTestSupport
import Testing

@Suite struct GraphDrawingTests {
  private static let hostile = [
    #"a "quoted" name"#, #"back\slash \n \N \G"#, "<b>bold</b> &amp; & &lt;", "#35; #quot;", "two\nlines", "end",
    "%%{init: {}}%%",
    "[x] {y} (z) | ; : `code`", "1. first", "🍏 日本語 مرحبا", "subgraph x", "classDef a fill:red;", " ", "\u{1}\u{7F}\t",
  ]

  private func graph(_ names: [String]) -> OperationGraph {
    let journal = Journal<String>()
    let members = names.map { NoteOperation($0, journal) }
    for (before, after) in zip(members, members.dropFirst()) { before ==> after }
    let groups = names.map { GroupOperation([NoteOperation($0, journal)]).named($0) }
    return OperationGraph(members + groups)
  }

  @Test func mermaidDrawsGroupsAsSubgraphsAndStatesAsColours() {
    let journal = Journal<String>()
    let (a, b, c) = (NoteOperation("a", journal), NoteOperation("b", journal), NoteOperation("c", journal))
    c.cancel()
    let group = GroupOperation("Import") { a ==> b }
    group ==> c
    #expect(
      OperationGraph([c]).mermaid() == """
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
    let journal = Journal<String>()
    let (a, b, c) = (NoteOperation("a", journal), NoteOperation("b", journal), NoteOperation("c", journal))
    let group = GroupOperation("Import") { a ==> b }
    group ==> c
    let text = OperationGraph([c]).dot()
    #expect(text.contains("subgraph cluster_1 {\n    label=\"Import\""))
    #expect(text.contains("n3 -> n0 [ltail=cluster_1]"))
    #expect(text.contains("n2 -> n3\n"))
  }

  @Test func aCycleIsRed() {
    let journal = Journal<String>()
    let (a, b, c) = (NoteOperation("a", journal), NoteOperation("b", journal), NoteOperation("c", journal))
    c ==> a ==> b ==> a
    let graph = OperationGraph([a])
    #expect(graph.mermaid().contains("linkStyle 1,2 stroke:#dc2626"))
    #expect(graph.dot().components(separatedBy: "penwidth=3").count == 3)
    a.removeDependency(b)
  }

  @Test func anArrowBetweenAGroupAndItsMemberHasAnEndBesideTheGroup() {
    let member = NoteOperation("member", Journal())
    let group = GroupOperation([member]).named("group")
    group ==> member
    let graph = OperationGraph([group])
    #expect(graph.mermaid().contains(#"s0(["group"]):::pending"#))
    #expect(graph.mermaid().contains("s0 --> n1"))
    #expect(graph.dot().contains("s0 -> n1"))
    member.removeDependency(group)
  }

  @Test func durationsAreBelowTheName() {
    let graph = graph(["a"]).withDurations { _ in .milliseconds(1500) }
    #expect(graph.mermaid().contains(#"subgraph n1["a, 1#46;5 s"]"#))
    #expect(graph.mermaid().contains(#"["a<br/>1#46;5 s"]:::pending"#))
    #expect(graph.dot().contains(#"label="a\n1.5 s""#))
  }

  @Test func mermaidSeesNothingInANameThatMeansSomethingToIt() {
    for name in Self.hostile {
      for line in graph([name]).mermaid().split(separator: "\n") where line.contains("[\"") {
        let label = line.split(separator: "[\"", maxSplits: 1)[1].split(separator: "\"]", maxSplits: 1)[0]
        let bare = label.replacing("<br/>", with: "").replacing(/#[0-9]+;/, with: "")
        #expect(!bare.contains { $0.isASCII && !$0.isLetter && !$0.isNumber && $0 != " " && $0 != "," }, "\(line)")
      }
    }
  }

  @Test(.enabled(if: Tool.dot != nil, "Graphviz is not installed"))
  func graphvizReadsEveryNameAsItIs() async throws {
    let graph = graph(Self.hostile)
    let drawn = try await Tool.dot?.run(["-Tjson0"], graph.dot())
    #expect(drawn?.errors == "")
    let json = try #require(
      try JSONSerialization.jsonObject(with: Data(drawn?.output.utf8 ?? "".utf8)) as? [String: Any]
    )
    let objects = try #require(json["objects"] as? [[String: Any]])
    let labels = objects.compactMap { $0["label"] as? String }
    // As Graphviz keeps them: escapes and entities are resolved when it draws.
    func resolved(_ label: String) -> String {
      label.replacing("\\n", with: "\u{0}").replacing("\\\\", with: "\\").replacing("\u{0}", with: "\n")
        .replacing("&amp;", with: "&")
    }
    func expected(_ name: String) -> String { name == "\u{1}\u{7F}\t" ? "␁␡ " : name }
    let simple = Self.hostile.filter { !$0.contains("\\") }
    for name in simple.map(expected) {
      #expect(labels.filter { resolved($0) == name }.count == 3, "\(name): \(labels)")
    }
    #expect((json["edges"] as? [Any])?.count == Self.hostile.count - 1)
  }

  @Test(.enabled(if: Tool.dot != nil, "Graphviz is not installed"))
  func graphvizDrawsEveryNameAsItIs() async throws {
    let drawn = try await Tool.dot?.run(["-Tsvg"], graph([#"back\slash \n \N \G "q" & <b>"#]).dot())
    #expect(drawn?.errors == "")
    #expect(
      drawn?.output.contains(#">back\slash \n \N \G &quot;q&quot; &amp; &lt;b&gt;<"#) == true,
      "\(drawn?.output ?? "")"
    )
  }

  @Test(.enabled(if: Tool.dot != nil, "Graphviz is not installed"))
  func graphvizAcceptsArrowsBetweenAGroupAndWhatIsInsideIt() async throws {
    let journal = Journal<String>()
    let (member, other) = (NoteOperation("member", journal), NoteOperation("other", journal))
    let inner = GroupOperation([member]).named("inner")
    let outer = GroupOperation([inner, other]).named("outer")
    outer ==> member
    other ==> outer
    let drawn = try await Tool.dot?.run(["-Tsvg"], OperationGraph([outer]).dot())
    #expect(drawn?.errors == "")
    #expect(drawn?.output.components(separatedBy: "class=\"edge\"").count == 3)
    member.removeDependency(outer)
    outer.removeDependency(other)
  }
}
