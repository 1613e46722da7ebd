/// A group is a box around its members. Neither Mermaid nor DOT can draw an arrow between a box and a node inside it,
/// but such an arrow is part of a cycle and must be visible. It leads to a *stand-in* node beside the box.
struct GraphDrawing {
  static let cycleColor = "#dc2626"

  private let outline: [(id: Int, depth: Int)]
  /// A stand-in replaces a box, which is one of the ends of the arrow.
  private(set) var arrows: [(from: Int, to: Int, standIn: Int?, isOnCycle: Bool)] = []
  /// For each box, the first and the last node inside it that is not a box. For any other node, the node itself.
  private(set) var firstInside: [Int]
  private(set) var lastInside: [Int]
  /// The number of nodes in each box, including the box. 1 for a node that is not a box.
  private var sizes: [Int]

  init(_ graph: OperationGraph) {
    let nodes = graph.nodes
    outline = GraphDrawing.outline(of: nodes.map(\.group))
    firstInside = Array(nodes.indices)
    lastInside = firstInside
    sizes = nodes.map { _ in 1 }
    var positions = nodes.map { _ in -1 }
    for (position, (id, _)) in outline.enumerated().reversed() {
      positions[id] = position
      if sizes[id] > 1 { firstInside[id] = firstInside[outline[position + 1].id] }
      lastInside[id] = outline[position + sizes[id] - 1].id
      if let group = nodes[id].group { sizes[group] += sizes[id] }
    }

    func isInside(_ node: Int, _ box: Int) -> Bool {
      positions[box] < positions[node] && positions[node] < positions[box] + sizes[box]
    }
    let waiting = graph.firstCycle ?? []
    let cycleWaits = Set(waiting.indices.map { [waiting[$0], waiting[($0 + 1) % waiting.count]] })
    for node in nodes {
      for dependency in node.dependencies {
        let standIn = isInside(node.id, dependency) ? dependency : isInside(dependency, node.id) ? node.id : nil
        arrows.append((dependency, node.id, standIn, cycleWaits.contains([node.id, dependency])))
      }
    }
  }

  /// Returns the nodes of a graph as an indented list, without recursion: the members of each group are below it.
  static func outline(of groups: [Int?]) -> [(id: Int, depth: Int)] {
    var members = [[Int]](repeating: [], count: groups.count)
    for (id, group) in groups.enumerated() { if let group { members[group].append(id) } }
    var outline: [(id: Int, depth: Int)] = []
    var toDo = groups.indices.reversed().filter { groups[$0] == nil }.map { (id: $0, depth: 0) }
    while let next = toDo.popLast() {
      outline.append(next)
      toDo += members[next.id].reversed().map { ($0, next.depth + 1) }
    }
    return outline
  }

  func isBox(_ node: Int) -> Bool { sizes[node] > 1 }

  var standIns: [Int] { Set(arrows.compactMap(\.standIn)).sorted() }

  func lines(box: (Int) -> (begin: String, content: String), end: String, node: (Int) -> String) -> String {
    var text = ""
    func add(_ line: String, _ depth: Int) {
      // The limit keeps the text of deeply nested groups short.
      text += String(repeating: "  ", count: min(depth + 1, 16)) + line + "\n"
    }
    for (position, (id, depth)) in outline.enumerated() {
      if isBox(id) {
        let (begin, content) = box(id)
        add(begin, depth)
        add(content, depth + 1)
      } else {
        add(node(id), depth)
      }
      let nextDepth = position + 1 < outline.count ? outline[position + 1].depth : 0
      for boxDepth in stride(from: depth - 1, through: nextDepth, by: -1) { add(end, boxDepth) }
    }
    return text
  }
}

extension OperationGraph.Node.State {
  var colors: (fill: String, line: String) {
    switch self {
    case .pending: ("#f3f4f6", "#6b7280")
    case .executing: ("#dbeafe", "#2563eb")
    case .finished: ("#dcfce7", "#16a34a")
    case .failed: ("#fee2e2", "#dc2626")
    case .cancelled: ("#e5e7eb", "#9ca3af")
    }
  }
}

extension OperationGraph {
  /// Returns the graph in Mermaid.
  ///
  /// GitHub and other tools draw Mermaid in Markdown code blocks with the language `mermaid`.
  ///
  /// Arrows lead from an operation to its dependents. Groups are boxes, colors show states, and a cycle is red. Names
  /// are escaped. Mermaid draws up to 500 arrows and 50,000 characters by default. For a larger graph use ``dot()``.
  public func mermaid() -> String {
    let drawing = GraphDrawing(self)
    var text = "flowchart LR\n"
    text += drawing.lines(
      // Mermaid draws a group without arrows from top to bottom by default.
      box: { ("subgraph n\($0)[\"\(mermaidLabel(of: $0))\"]", "direction LR") },
      end: "end",
      node: { "n\($0)[\"\(mermaidLabel(of: $0))\"]:::\(nodes[$0].state)" }
    )
    func line(_ line: String) { text += "  \(line)\n" }
    for node in drawing.standIns { line("s\(node)([\"\(mermaidLabel(of: node))\"]):::\(nodes[node].state)") }
    for arrow in drawing.arrows {
      func name(_ node: Int) -> String { node == arrow.standIn ? "s\(node)" : "n\(node)" }
      line("\(name(arrow.from)) --> \(name(arrow.to))")
    }
    for state in Node.State.allCases where nodes.contains(where: { $0.state == state }) {
      let dashes = state == .cancelled ? ",stroke-dasharray:4 2" : ""
      line("classDef \(state) fill:\(state.colors.fill),stroke:\(state.colors.line),color:#111827\(dashes)")
    }
    for node in nodes where drawing.isBox(node.id) { line("class n\(node.id) \(node.state)") }
    let cycle = drawing.arrows.indices.filter { drawing.arrows[$0].isOnCycle }
    if !cycle.isEmpty {
      line(
        "linkStyle \(cycle.map(String.init).joined(separator: ",")) stroke:\(GraphDrawing.cycleColor),stroke-width:3px"
      )
    }
    return text
  }

  private func mermaidLabel(of node: Int) -> String {
    // Mermaid hides the second line of a group's title behind the members.
    let separator = nodes[node].isGroup ? ", " : "<br/>"
    let duration = nodes[node].duration.map { separator + Self.mermaidEscaped($0.reading) } ?? ""
    return Self.mermaidEscaped(nodes[node].name) + duration
  }

  /// Uses a numeric entity for every character that Mermaid, Markdown or HTML could interpret.
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

  /// Returns the graph in DOT, the language of Graphviz, as ``mermaid()`` does: `dot -Tsvg graph.dot -o graph.svg`.
  public func dot() -> String {
    let drawing = GraphDrawing(self)
    var text = """
      digraph operations {
        rankdir=LR
        compound=true
        node [shape=box, style="rounded,filled", fontname="Helvetica"]
        graph [style="rounded,filled", fontname="Helvetica"]

      """
    text += drawing.lines(
      box: { ("subgraph cluster_\($0) {", "label=\(dotLabel(of: $0)); \(colors(of: $0, separator: "; "))") },
      end: "}",
      node: { "n\($0) [label=\(dotLabel(of: $0)), \(colors(of: $0, separator: ", "))]" }
    )
    func line(_ line: String) { text += "  \(line)\n" }
    for node in drawing.standIns {
      line("s\(node) [label=\(dotLabel(of: node)), shape=ellipse, \(colors(of: node, separator: ", "))]")
    }
    for arrow in drawing.arrows {
      var attributes = arrow.isOnCycle ? ["color=\"\(GraphDrawing.cycleColor)\"", "penwidth=3"] : []
      // In DOT, an arrow joins two nodes. An attribute clips the arrow at the border of a box.
      func end(_ node: Int, inside: [Int], _ cut: String) -> String {
        if node == arrow.standIn { return "s\(node)" }
        if inside[node] != node { attributes.append("\(cut)=cluster_\(node)") }
        return "n\(inside[node])"
      }
      let from = end(arrow.from, inside: drawing.lastInside, "ltail")
      let to = end(arrow.to, inside: drawing.firstInside, "lhead")
      line("\(from) -> \(to)" + (attributes.isEmpty ? "" : " [\(attributes.joined(separator: ", "))]"))
    }
    return text + "}\n"
  }

  private func colors(of node: Int, separator: String) -> String {
    let (fill, line) = nodes[node].state.colors
    return "fillcolor=\"\(fill)\"\(separator)color=\"\(line)\""
  }

  private func dotLabel(of node: Int) -> String {
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
