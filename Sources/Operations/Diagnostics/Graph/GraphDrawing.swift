/// The elements of a drawn graph, independent of the graph language.
///
/// A group is a box around its members. Neither Mermaid nor DOT can draw an arrow between a box and a node inside it,
/// but such an arrow is part of a cycle and must be visible. It leads to a *stand-in* node beside the box.
struct GraphDrawing {
  static let cycleColor = "#dc2626"

  enum Step {
    case open(Int)
    case node(Int)
    case close(Int)
    case standIn(Int)
  }

  struct Arrow {
    let from: Int
    let to: Int
    /// The box, among `from` and `to`, that its stand-in replaces.
    let standIn: Int?
  }

  /// The boxes and nodes, nested. On each level, they are in the order of the graph's nodes.
  private(set) var steps: [Step] = []
  private(set) var arrows: [Arrow] = []
  private(set) var cycle: [Int] = []
  /// For each box, the first and the last node inside it that is not a box. For any other node, the node itself.
  private(set) var firstInside: [Int]
  private(set) var lastInside: [Int]
  private let isBox: [Bool]

  init(_ graph: OperationGraph) {
    let nodes = graph.nodes
    var members = [[Int]](repeating: [], count: nodes.count)
    for node in nodes { if let group = node.group { members[group].append(node.id) } }
    isBox = members.map { !$0.isEmpty }
    firstInside = Array(nodes.indices)
    lastInside = firstInside

    // The positions at which a depth-first tour enters and leaves each node.
    var (entered, left) = (firstInside, firstInside)
    var tour: [Int] = []
    var toDo: [Step] = nodes.reversed().filter { $0.group == nil }.map { .open($0.id) }
    while let step = toDo.popLast() {
      guard case .open(let node) = step else {
        if case .close(let node) = step { left[node] = tour.count }
        steps.append(step)
        continue
      }
      entered[node] = tour.count
      tour.append(node)
      left[node] = tour.count
      steps.append(isBox[node] ? step : .node(node))
      if isBox[node] { toDo += [.close(node)] + members[node].reversed().map { .open($0) } }
    }
    for node in tour.reversed() where isBox[node] {
      firstInside[node] = firstInside[members[node][0]]
      lastInside[node] = lastInside[members[node][members[node].count - 1]]
    }

    func isInside(_ node: Int, _ box: Int) -> Bool { entered[box] < entered[node] && entered[node] < left[box] }
    let waiting = graph.points.cycle ?? []
    let cycleWaits = Set(waiting.indices.map { [waiting[$0], waiting[($0 + 1) % waiting.count]] })
    var standIns: Set<Int> = []
    for node in nodes {
      for dependency in node.dependencies {
        let standIn = isInside(node.id, dependency) ? dependency : isInside(dependency, node.id) ? node.id : nil
        if let standIn { standIns.insert(standIn) }
        if cycleWaits.contains([node.id, dependency]) { cycle.append(arrows.count) }
        arrows.append(Arrow(from: dependency, to: node.id, standIn: standIn))
      }
    }
    steps += standIns.sorted().map { .standIn($0) }
  }

  func isBox(_ node: Int) -> Bool { isBox[node] }
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
    var depth = 1
    func line(_ line: String) { text += Self.indentation(depth) + line + "\n" }
    for step in drawing.steps {
      switch step {
      case .open(let node):
        line("subgraph n\(node)[\"\(mermaidLabel(of: node))\"]")
        depth += 1
        // Mermaid draws a group without arrows from top to bottom by default.
        line("direction LR")
      case .node(let node): line("n\(node)[\"\(mermaidLabel(of: node))\"]:::\(nodes[node].state)")
      case .close:
        depth -= 1
        line("end")
      case .standIn(let node): line("s\(node)([\"\(mermaidLabel(of: node))\"]):::\(nodes[node].state)")
      }
    }
    for arrow in drawing.arrows {
      func name(_ node: Int) -> String { node == arrow.standIn ? "s\(node)" : "n\(node)" }
      line("\(name(arrow.from)) --> \(name(arrow.to))")
    }
    for state in Node.State.allCases where nodes.contains(where: { $0.state == state }) {
      let dashes = state == .cancelled ? ",stroke-dasharray:4 2" : ""
      line("classDef \(state) fill:\(state.colors.fill),stroke:\(state.colors.line),color:#111827\(dashes)")
    }
    for node in nodes where drawing.isBox(node.id) { line("class n\(node.id) \(node.state)") }
    if !drawing.cycle.isEmpty {
      let cycle = drawing.cycle.map(String.init).joined(separator: ",")
      line("linkStyle \(cycle) stroke:\(GraphDrawing.cycleColor),stroke-width:3px")
    }
    return text
  }

  /// The limit keeps the text of deeply nested groups short.
  private static func indentation(_ depth: Int) -> String { String(repeating: "  ", count: min(depth, 16)) }

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
}

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
        line("label=\(dotLabel(of: node)); \(colors(of: node, separator: "; "))")
      case .node(let node): line("n\(node) [label=\(dotLabel(of: node)), \(colors(of: node, separator: ", "))]")
      case .close:
        depth -= 1
        line("}")
      case .standIn(let node):
        line("s\(node) [label=\(dotLabel(of: node)), shape=ellipse, \(colors(of: node, separator: ", "))]")
      }
    }
    let cycle = Set(drawing.cycle)
    for (index, arrow) in drawing.arrows.enumerated() {
      var attributes = cycle.contains(index) ? ["color=\"\(GraphDrawing.cycleColor)\"", "penwidth=3"] : []
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
