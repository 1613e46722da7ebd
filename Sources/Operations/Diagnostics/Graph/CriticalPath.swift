/// The operations that decide how long a graph takes: each waits for the one before, and no other way through takes
/// longer.
///
/// However many operations run at once, it does not get faster than this; to make it faster, begin here. Where slots
/// are few it takes longer.
public struct CriticalPath: Sendable, Hashable, CustomStringConvertible {
  /// The names of the operations, in the order in which they run. Of groups, the members that matter.
  public let names: [String]
  /// How long these operations execute.
  public let duration: Duration

  /// The duration and the names, of a long path the first and the last few.
  public var description: String {
    let (first, last) = (6, 2)
    let shown =
      names.count <= first + last + 1
      ? names.map(\.brief)
      : names.prefix(first).map(\.brief) + ["… \(names.count - first - last) more …"]
        + names.suffix(last).map(\.brief)
    return "\(duration.reading): " + shown.joined(separator: " → ")
  }
}

extension OperationGraph {
  /// The same graph with how long operations execute. Nil is not known, and counts as nothing, as what is negative
  /// does.
  ///
  /// ```swift
  /// let estimated = OperationGraph([importer]).withDurations { node in
  ///   node.name == "Download" ? .seconds(2) : .milliseconds(50)
  /// }
  /// print(estimated.criticalPath!)
  /// ```
  public func withDurations(_ duration: (Node) throws -> Duration?) rethrows -> Self {
    var graph = self
    for index in nodes.indices { graph.nodes[index].duration = try duration(nodes[index]) }
    return graph
  }

  /// What decides how long the graph takes. Nil as long as no duration is known, or if operations wait in a circle.
  ///
  /// A group takes as long as its members do; its own duration counts if it has none. O(n + e).
  public var criticalPath: CriticalPath? {
    guard circle == nil, nodes.contains(where: { $0.duration != nil }) else { return nil }
    var lengths = [Duration](repeating: .zero, count: points.waits.count)
    var previous = [Int?](repeating: nil, count: points.waits.count)
    for point in points.order.order {
      let before = points.waits[point].max { lengths[$0] < lengths[$1] }
      previous[point] = before
      lengths[point] = (before.map { lengths[$0] } ?? .zero).adding(ownDuration(ofPoint: point))
    }
    guard var last = lengths.indices.max(by: { lengths[$0] < lengths[$1] }) else { return nil }
    let duration = lengths[last]
    var names: [String] = []
    while true {
      if ownDuration(ofPoint: last) > .zero { names.append(nodes[points.nodes[last]].name) }
      guard let before = previous[last] else { break }
      last = before
    }
    return CriticalPath(names: names.reversed(), duration: duration)
  }

  private func ownDuration(ofPoint point: Int) -> Duration {
    let node = points.nodes[point]
    return points.beginnings[node] == node ? max(nodes[node].duration ?? .zero, .zero) : .zero
  }
}
