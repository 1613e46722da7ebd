/// The longest chain of dependencies in a graph, measured by duration.
///
/// A graph cannot take less time than its critical path, however many operations run at once. It takes longer when
/// there are fewer slots than ready operations.
public struct CriticalPath: Sendable, Hashable, CustomStringConvertible {
  /// The names of the operations in the order in which they run. A group is represented by its members.
  public let names: [String]
  /// The sum of the operations' durations.
  public let duration: Duration

  /// The duration and the names. A long path is shortened to its first and last operations.
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
  /// Returns the graph with a duration for each operation.
  ///
  /// An unknown (nil) or negative duration counts as zero.
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

  /// The longest chain of dependencies, or nil if no duration is known or the graph has a cycle.
  ///
  /// A group takes as long as its members. Its own duration counts only if it has no members.
  ///
  /// - Complexity: O(n + e) for n operations with e dependencies.
  public var criticalPath: CriticalPath? {
    guard points.cycle == nil, nodes.contains(where: { $0.duration != nil }) else { return nil }
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
    return points.starts[node] == node ? max(nodes[node].duration ?? .zero, .zero) : .zero
  }
}
