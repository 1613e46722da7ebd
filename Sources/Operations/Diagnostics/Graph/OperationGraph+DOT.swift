extension OperationGraph {
  /// Returns the graph in DOT, the language of Graphviz: `dot -Tsvg graph.dot -o graph.svg`.
  ///
  /// Arrows lead from an operation to its dependents. Groups are boxes, colors show states, and a cycle is red.
  public func dot() -> String {
    let drawing = GraphDrawing(self)
    var text = """
      digraph operations {
        rankdir=LR
        compound=true
        node [shape=box, style="rounded,filled", fontname="Helvetica"]
        graph [style="rounded,filled", fontname="Helvetica"]

      """
    var depth = 1
    func line(_ line: String) { text += Self.indentation(depth) + line + "\n" }
    for step in drawing.steps {
      switch step {
      case .open(let node):
        line("subgraph cluster_\(node) {")
        depth += 1
        line("label=\(label(of: node)); \(colors(of: node, separator: "; "))")
      case .node(let node): line("n\(node) [label=\(label(of: node)), \(colors(of: node, separator: ", "))]")
      case .close:
        depth -= 1
        line("}")
      case .standIn(let node):
        line("s\(node) [label=\(label(of: node)), shape=ellipse, \(colors(of: node, separator: ", "))]")
      }
    }
    for arrow in drawing.arrows {
      // In DOT an arrow joins nodes, and is clipped at the border of a box.
      var attributes: [String] = arrow.isInCycle ? ["color=\"\(GraphDrawing.cycleColor)\"", "penwidth=3"] : []
      let from = end(arrow.from, inside: drawing.lastInside, "ltail", &attributes)
      let to = end(arrow.to, inside: drawing.firstInside, "lhead", &attributes)
      line("\(from) -> \(to)" + (attributes.isEmpty ? "" : " [\(attributes.joined(separator: ", "))]"))
    }
    return text + "}\n"
  }

  private func end(_ end: GraphDrawing.End, inside: [Int], _ cut: String, _ attributes: inout [String]) -> String {
    switch end {
    case .standIn(let node): return "s\(node)"
    case .node(let node):
      if inside[node] != node { attributes.append("\(cut)=cluster_\(node)") }
      return "n\(inside[node])"
    }
  }

  private func colors(of node: Int, separator: String) -> String {
    let (fill, line) = nodes[node].state.colors
    return "fillcolor=\"\(fill)\"\(separator)color=\"\(line)\""
  }

  private func label(of node: Int) -> String {
    var (text, length) = ("\"", 0)
    for character in nodes[node].name.unicodeScalars {
      switch character {
      case "\"", "\\": text += "\\\(character)"
      case "\n": text += "\\n"
      case "\t": text += " "
      // Graphviz expands HTML entities.
      case "&": text += "&amp;"
      default: text.unicodeScalars.append(character.shown)
      }
      length += 1
      // Graphviz limits a string token to 16,384 bytes, so a long label is a concatenation.
      if length.isMultiple(of: 2000) { text += "\" + \"" }
    }
    if let duration = nodes[node].duration { text += (nodes[node].isGroup ? ", " : "\\n") + duration.reading }
    return text + "\""
  }
}
