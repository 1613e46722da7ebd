public import Foundation

/// A snapshot of operations and their dependencies, for finding cycles, estimating durations, and drawing.
///
/// ```swift
/// let graph = OperationGraph([importer])
/// print(graph.mermaid())                          // for Markdown
/// if let cycle = graph.cycle { print("waits for itself:", cycle) }
/// ```
///
/// A graph can contain any Foundation operation. Groups contain their members. Take the graph before the operations
/// run, because a finished operation has released its dependencies, and a group releases finished members. To get the
/// graph afterwards, attach an ``OperationTracer`` before the run and read its ``OperationTracer/graph``.
///
/// ## Threads
///
/// Taking a graph changes nothing and is safe at any time on any thread, even while the operations run. Each
/// operation is read at a slightly different moment. Do not rename a plain Foundation operation meanwhile, because on
/// Linux its name has no lock.
///
/// ## Cost
///
/// Taking a graph costs O(n + e) for n operations with e dependencies, without recursion.
public struct OperationGraph: Sendable {
  /// The operations: first the given ones, then the operations found from them. The `id` of a node is its index.
  public internal(set) var nodes: [Node]
  /// The node of each point in time: the finish of every node, which has the index of the node, and then the start of every
  /// node with members. Members wait for that start.
  let points: [Int]
  /// The point at which each node starts. A node without members starts and finishes at the same point.
  let starts: [Int]
  let waits: [[Int]]
  /// The points that are on no cycle and wait for none, each after those that it waits for.
  private let order: [Int]
  let firstCycle: [Int]?

  /// Creates the graph of `operations`, their direct and indirect dependencies, and the members of groups.
  ///
  /// For a member of a group that has not started, the graph contains the group, but not the group's other members.
  public init(_ operations: [Operation]) {
    self.init(Self.nodes(of: WaitSnapshot(of: operations, scope: .everything)))
  }

  init(_ nodes: [Node]) {
    var points = Array(nodes.indices)
    var starts = points
    for node in nodes {
      guard let group = node.group, starts[group] == group else { continue }
      starts[group] = points.count
      points.append(group)
    }
    var waits = [[Int]](repeating: [], count: points.count)
    for node in nodes {
      let (start, finish) = (starts[node.id], node.id)
      waits[start] += node.dependencies
      // The start comes first, so that a cycle takes the shortest path and leaves out the members.
      if start != finish { waits[finish].insert(start, at: 0) }
      if let group = node.group {
        waits[start].append(starts[group])
        waits[group].append(finish)
      }
    }
    (self.nodes, self.points, self.starts, self.waits) = (nodes, points, starts, waits)
    let order = WaitOrder(waits)
    self.order = order.order
    firstCycle = order.cycles.first?.map { points[$0] }.withoutRepeats { $0 }
  }

  /// The names of operations that wait for each other in a cycle, or nil if there is none.
  ///
  /// Each operation waits for the next, and the last waits for the first. A group waits for its members, and the
  /// members wait for the group's start. If there are several cycles, this is the first one found.
  public var cycle: [String]? { firstCycle?.map { nodes[$0].name } }

  /// An operation that is in the snapshot only as a start is without its members.
  private static func nodes(of snapshot: WaitSnapshot) -> [Node] {
    var (nodes, indices) = ([Node](), [ObjectIdentifier: Int]())
    let ids = snapshot.nodes.map { node -> Int in
      guard let operation = node.operation else { return 0 }
      if let id = indices[ObjectIdentifier(operation)] { return id }
      indices[ObjectIdentifier(operation)] = nodes.count
      let isGroup = (operation as? AsyncOperation)?.runsOthersInside ?? false
      let state = Node.State(of: operation)
      nodes.append(Node(id: nodes.count, name: operation.displayName, state: state, isGroup: isGroup))
      return nodes.count - 1
    }
    for (id, node) in zip(ids, snapshot.nodes) {
      // The list may contain a dependency twice.
      var seen: Set<Int> = []
      for wait in node.waits {
        let other = ids[wait.node]
        switch wait.kind {
        case .dependency where seen.insert(other).inserted: nodes[id].dependencies.append(other)
        case .member: nodes[other].group = id
        case .groupStart: nodes[id].group = other
        case .dependency, .ownStart, .task, .slot, .key, .user: break
        }
      }
    }
    return nodes
  }

  /// Returns the graph with a duration for each operation.
  ///
  /// An unknown (nil) or negative duration counts as zero.
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
    guard firstCycle == nil, nodes.contains(where: { $0.duration != nil }) else { return nil }
    var lengths = [Duration](repeating: .zero, count: points.count)
    func last(of points: some Sequence<Int>) -> Int? { points.max { lengths[$0] < lengths[$1] } }
    for point in order {
      let before = last(of: waits[point]).map { lengths[$0] } ?? .zero
      lengths[point] = before.adding(ownDuration(ofPoint: point))
    }
    var names: [String] = []
    var next = last(of: lengths.indices)
    while let point = next {
      if ownDuration(ofPoint: point) > .zero { names.append(nodes[points[point]].name) }
      next = last(of: waits[point])
    }
    return CriticalPath(names: names.reversed(), duration: lengths.max() ?? .zero)
  }

  private func ownDuration(ofPoint point: Int) -> Duration {
    let node = points[point]
    return starts[node] == node ? max(nodes[node].duration ?? .zero, .zero) : .zero
  }

  /// An operation at the moment the graph was taken.
  public struct Node: Sendable, Hashable, Identifiable {
    /// The state of an operation, including its outcome.
    public enum State: String, Sendable, Hashable, Codable, CaseIterable {
      /// The operation has not started to execute.
      case pending
      /// The operation is executing.
      case executing
      /// The operation finished without errors.
      case finished
      /// The operation finished with errors.
      case failed
      /// The operation was cancelled, and may have finished.
      case cancelled

      fileprivate init(of operation: Operation) {
        let own = operation as? AsyncOperation
        switch own?.state ?? (operation.isFinished ? .finished : operation.isExecuting ? .executing : .pending) {
        case .finished where own?.core.withLock({ $0.lifecycle.hasFailed }) == true: self = .failed
        case _ where operation.isCancelled: self = .cancelled
        case .finished: self = .finished
        case .executing: self = .executing
        case .pending: self = .pending
        }
      }
    }

    /// The index in ``OperationGraph/nodes``.
    public let id: Int
    /// The name of the operation, or of its type if the operation has no name.
    public let name: String
    /// The state at the moment the graph was taken.
    public internal(set) var state: State
    /// Whether other operations run inside this one, as in a group or a retry.
    public internal(set) var isGroup: Bool
    /// The index of the operation that this one runs inside, or nil if there is none.
    public internal(set) var group: Int?
    /// The indices of the dependencies, each once.
    public internal(set) var dependencies: [Int] = []
    /// The time that the operation takes, or nil if it is unknown. See ``OperationGraph/withDurations(_:)``.
    public internal(set) var duration: Duration?
  }
}

/// The longest chain of dependencies in a graph, measured by duration.
///
/// A graph cannot take less time than its critical path, however many operations run at once. It takes longer when
/// there are fewer slots than ready operations.
public struct CriticalPath: Sendable, Hashable, CustomStringConvertible {
  /// The names of the operations, in the order in which they run. Members represent their group.
  public let names: [String]
  /// The sum of the operations' durations.
  public let duration: Duration

  /// The duration and the names. A long path is shortened to its first and last operations.
  public var description: String {
    let (first, last) = (names.prefix(6), names.dropFirst(6).suffix(2))
    let hidden = names[first.endIndex..<last.startIndex]
    let middle = hidden.count > 1 ? ["… \(hidden.count) more …"] : hidden.map(\.brief)
    return "\(duration.reading): " + (first.map(\.brief) + middle + last.map(\.brief)).joined(separator: " → ")
  }
}
