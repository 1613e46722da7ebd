public import Foundation

/// A picture of operations and what they wait for, as a value: to look for circles, to measure, and to draw.
///
/// ```swift
/// let graph = OperationGraph([importer])
/// print(graph.mermaid())                          // for Markdown
/// if let cycle = graph.cycle { print("waits for itself:", cycle) }
/// ```
///
/// Any Foundation operations, groups with their members in them. Taken before they run it shows everything: an
/// operation that has finished has forgotten what it waited for, and a group lets finished members go. To see how it
/// was, attach an ``OperationTracer`` and ask for its ``OperationTracer/graph``.
///
/// Taking it changes nothing, and may be done at any moment on any thread, of operations that run as well: each is
/// looked at at a moment of its own. (A plain Foundation operation must not be renamed meanwhile: on Linux its name has
/// no lock.) O(n + e), without recursion.
public struct OperationGraph: Sendable {
  /// The operations, those that were given first, then what they led to. Each one's `id` is its index.
  public internal(set) var nodes: [Node]
  /// Where the nodes wait, and in which order they can be done.
  let points: GraphPoints

  /// The graph of these operations, of what they depend on, directly or not, and of the members of groups.
  ///
  /// A member that waits for its group to begin comes with that group, but without its siblings.
  public init(_ operations: [Operation]) {
    var walk = GraphWalk()
    self.init(walk.nodes(from: operations))
  }

  init(_ nodes: [Node]) {
    self.nodes = nodes
    points = GraphPoints(nodes)
  }

  /// The names of operations that wait for each other in a circle: each waits for the next, and the last for the first.
  /// Nil if there is no circle; the first that is found if there are several.
  ///
  /// A group waits for its members, and they wait for its beginning.
  public var cycle: [String]? { circle?.map { nodes[$0].name } }

  /// The nodes of that circle.
  var circle: [Int]? { points.circle }
}

extension OperationGraph {
  /// An operation as it was when the graph was taken.
  public struct Node: Sendable, Hashable, Identifiable {
    /// Where an operation is in its life, and how it ended.
    public enum State: String, Sendable, Hashable, Codable, CaseIterable {
      /// Not begun.
      case pending
      /// Begun, and not finished.
      case executing
      /// Finished, without errors.
      case finished
      /// Finished, with errors.
      case failed
      /// Finished or not.
      case cancelled
    }

    /// Its index in ``OperationGraph/nodes``.
    public let id: Int
    /// The operation's, or its type's if it has none.
    public let name: String
    /// As it was when the graph was taken.
    public let state: State
    /// Whether it is an operation that others run inside of: a group, or one that tries or follows others.
    public let isGroup: Bool
    /// What it runs inside of.
    public internal(set) var group: Int?
    /// What it waits for, each once.
    public internal(set) var dependencies: [Int] = []
    /// How long it executed, as far as that is known: see ``OperationGraph/withDurations(_:)``.
    public internal(set) var duration: Duration?
  }
}
