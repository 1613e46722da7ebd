extension OperationGraph {
  /// Returns the graph in Mermaid, which GitHub and others draw in Markdown code blocks with the language `mermaid`.
  ///
  /// Arrows lead from an operation to its dependents. Groups are boxes, colors show states, and a cycle is red. Names
  /// are escaped. Mermaid draws up to 500 arrows and 50,000 characters by default. For a larger graph use ``dot()``.
  public func mermaid() -> String {
    let drawing = GraphDrawing(self)
    var text = "flowchart LR\n"
    var depth = 1
    func line(_ line: String) { text += Self.indentation(depth) + line + "\n" }
    for step in drawing.steps {
      switch step {
      case .open(let node):
        line("subgraph n\(node)[\"\(label(of: node))\"]")
        depth += 1
        // Mermaid draws a group without arrows from top to bottom by default.
        line("direction LR")
      case .node(let node): line("n\(node)[\"\(label(of: node))\"]:::\(nodes[node].state)")
      case .close:
        depth -= 1
        line("end")
      case .standIn(let node): line("s\(node)([\"\(label(of: node))\"]):::\(nodes[node].state)")
      }
    }
    for arrow in drawing.arrows { line("\(Self.name(of: arrow.from)) --> \(Self.name(of: arrow.to))") }
    for state in Node.State.allCases where nodes.contains(where: { $0.state == state }) {
      let dashes = state == .cancelled ? ",stroke-dasharray:4 2" : ""
      line("classDef \(state) fill:\(state.colors.fill),stroke:\(state.colors.line),color:#111827\(dashes)")
    }
    for node in nodes where drawing.isBox(node.id) { line("class n\(node.id) \(node.state)") }
    let cycle = drawing.arrows.indices.filter { drawing.arrows[$0].isInCycle }.map(String.init)
    if !cycle.isEmpty {
      line("linkStyle \(cycle.joined(separator: ",")) stroke:\(GraphDrawing.cycleColor),stroke-width:3px")
    }
    return text
  }

  /// Returns the indentation of a line, limited so that the text of deeply nested groups does not consist of spaces.
  static func indentation(_ depth: Int) -> String { String(repeating: "  ", count: min(depth, 16)) }

  private static func name(of end: GraphDrawing.End) -> String {
    switch end {
    case .node(let node): "n\(node)"
    case .standIn(let node): "s\(node)"
    }
  }

  private func label(of node: Int) -> String {
    // Mermaid hides the second line of a group's title behind the members.
    let separator = nodes[node].isGroup ? ", " : "<br/>"
    let duration = nodes[node].duration.map { separator + Self.mermaidEscaped($0.reading) } ?? ""
    return Self.mermaidEscaped(nodes[node].name) + duration
  }

  /// Replaces every character that Mermaid, Markdown or HTML could interpret by its numeric entity.
  private static func mermaidEscaped(_ name: String) -> String {
    var text = ""
    for character in name.unicodeScalars {
      switch character {
      case "\n": text += "<br/>"
      case " " where !text.isEmpty && text.last != " ": text += " "
      case "0"..."9", "a"..."z", "A"..."Z", ",": text.unicodeScalars.append(character)
      case "\t": text += " "
      case " "..."~": text += "#\(character.value);"
      default: text.unicodeScalars.append(character.shown)
      }
    }
    return text
  }
}
