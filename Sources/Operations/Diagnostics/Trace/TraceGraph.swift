/// A drawing of the operations of a trace. Members are in the box of their group, to the right of those they wait for.
struct TraceGraph {
  private static let (width, height, padding, heading) = (150, 26, 12, 14)
  private static let (gap, aisle, longestColumn) = (10, 44, 8)

  private let records: [OperationTracer.Record]
  private let outline: [(id: Int, depth: Int)]
  /// The members of each group and, last, those of none.
  private var members: [[Int]]
  /// For each operation, its siblings that it or its members wait for.
  private var before: [[Int]]
  private var columns: [Int]
  private var boxes: [(x: Int, y: Int, width: Int, height: Int)]
  private var size = (width: 0, height: 0)

  init(_ records: [OperationTracer.Record]) {
    self.records = records
    outline = GraphDrawing.outline(of: records.map(\.group))
    members = Array(repeating: [], count: records.count + 1)
    before = Array(repeating: [], count: records.count)
    columns = Array(repeating: 0, count: records.count)
    boxes = Array(repeating: (Self.padding, Self.padding, Self.width, Self.height), count: records.count)
    for (id, _) in outline { members[records[id].group ?? records.count].append(id) }
    findColumns()
    for group in outline.reversed().map(\.id) + [records.count] where !members[group].isEmpty {
      let content = arrange(members[group])
      size = (content.width + 2 * Self.padding, content.height + 2 * Self.padding)
      if group < records.count { (boxes[group].width, boxes[group].height) = (size.width, size.height + Self.heading) }
    }
    for (id, _) in outline {
      guard let group = records[id].group else { continue }
      boxes[id].x += boxes[group].x
      boxes[id].y += boxes[group].y + Self.heading
    }
  }

  /// Finds the longest ways through the siblings. Those on a cycle, and those that wait for them, come first.
  private mutating func findColumns() {
    var depths = columns
    for (id, depth) in outline { depths[id] = depth }
    for record in records {
      for dependency in record.dependencies {
        var (from, to) = (dependency, record.id)
        while records[from].group != records[to].group {
          if depths[from] >= depths[to] { from = records[from].group ?? from } else { to = records[to].group ?? to }
        }
        if from != to { before[to].append(from) }
      }
    }
    for id in WaitOrder(before).order { columns[id] = before[id].map { columns[$0] + 1 }.max() ?? 0 }
  }

  // Gives the members of a group their places in it, and returns the size. A long column is folded.
  private mutating func arrange(_ members: [Int]) -> (width: Int, height: Int) {
    let longest = max(Self.longestColumn, Int(Double(members.count).squareRoot()))
    var (x, height) = (Self.padding, 0)
    for (_, column) in Dictionary(grouping: members, by: { columns[$0] }).sorted(by: { $0.key < $1.key }) {
      let best = column.map { id in before[id].map { boxes[$0].y }.reduce(0, +) / max(before[id].count, 1) }
      let sorted = column.indices.sorted { (best[$0], $0) < (best[$1], $1) }
      let folds = (column.count + longest - 1) / longest
      let count = (column.count + folds - 1) / folds
      for start in stride(from: 0, to: column.count, by: count) {
        var (y, width) = (Self.padding, 0)
        for index in sorted[start..<min(start + count, column.count)] {
          let id = column[index]
          boxes[id].x = x
          boxes[id].y = folds > 1 ? y : max(y, best[index])
          y = boxes[id].y + boxes[id].height + Self.gap
          width = max(width, boxes[id].width)
        }
        height = max(height, y - Self.gap - Self.padding)
        x += width + Self.gap
      }
      x += Self.aisle - Self.gap
    }
    return (x - Self.aisle - Self.padding, height)
  }

  /// The starts and ends of the arrows. One arrow stands for those from, or to, all members of a group.
  private var arrows: [[Int]] {
    let all = records.flatMap { record in record.dependencies.map { [$0, record.id] } }
    return [1, 0].reduce(all) { arrows, end in
      let grouped = Dictionary(grouping: arrows) { arrow in
        records[arrow[end]].group.map { end == 0 ? [$0, arrow[1]] : [arrow[0], $0] } ?? []
      }
      return grouped.flatMap { box, arrows in
        !box.isEmpty && arrows.count == members[box[end]].count && arrows.count > 1 ? [box] : arrows
      }
    }
  }

  var text: String {
    // The arrows to a box arrive next to each other.
    let arrows = Dictionary(grouping: arrows) { $0[1] }.sorted { $0.key < $1.key }.flatMap { _, arrows in
      arrows.sorted { (boxes[$0[0]].y, $0[0]) < (boxes[$1[0]].y, $1[0]) }.enumerated().map { number, arrow in
        let (from, to) = (boxes[arrow[0]], boxes[arrow[1]])
        let (left, top, right) = (from.x + from.width, from.y + from.height / 2, to.x)
        let bottom = to.y + to.height * (number + 1) / (arrows.count + 1)
        let bend = max(16, abs(right - left) / 3)
        return """
          <path class="arrow" data-ends="\(arrow[0]) \(arrow[1])" \
          d="M\(left) \(top)C\(left + bend) \(top) \(right - bend) \(bottom) \(right) \(bottom)m-5 -3l5 3l-5 3"/>
          """
      }
    }
    let (groups, others) = (outline.filter { !members[$0.id].isEmpty }, outline.filter { members[$0.id].isEmpty })
    let lines = groups.map { draw(records[$0.id]) } + arrows + others.map { draw(records[$0.id]) }
    return "<svg width=\"\(size.width)\" height=\"\(size.height)\">\n\(lines.joined(separator: "\n"))\n</svg>"
  }

  private func draw(_ record: OperationTracer.Record) -> String {
    let (box, name) = (boxes[record.id], record.name.inOneLine)
    let mark = record.state == .failed ? "✕ " : ""
    let kind = members[record.id].isEmpty ? "" : " box"
    return """
      <g class="node" data-id="\(record.id)"><title>\("\(name): \(record.state.rawValue)".inMarkup)</title>\
      <rect class="\(record.state.rawValue)\(kind)" \
      x="\(box.x)" y="\(box.y)" width="\(box.width)" height="\(box.height)" rx="4"/>\
      <text x="\(box.x + 8)" y="\(box.y + 17)">\((mark + name.shortened(to: 20)).inMarkup)</text></g>
      """
  }
}
