import Foundation

/// Operations that wait for each other.
struct DependencyCycle {
  /// The operations of the cycle. Each waits for the next, and the last waits for the first.
  let operations: [Operation]

  private static let namedOperations = 16

  /// The names in order, with the first one repeated at the end.
  var description: String {
    let names = operations.prefix(Self.namedOperations).map(\.displayName)
    let others = operations.count - names.count
    return (names + (others > 0 ? ["… \(others) more …"] : []) + names.prefix(1)).joined(separator: " → ")
  }
}

/// A search for cycles among the operations that an operation waits for, directly or indirectly. A group waits for its
/// members.
///
/// The search uses Tarjan's algorithm, in O(n + e) and without recursion. It skips finished operations, because they
/// wait for nothing.
struct WaitSearch {
  enum Result {
    /// The search has found cycles.
    ///
    /// - Parameter affected: The operations on a cycle and the operations that depend on them, each with its cycle. An
    ///   operation comes after its dependencies.
    case cycles(affected: [(operation: Operation, cycle: DependencyCycle)])
    case none
    /// The search exceeded its limit, or the operations changed meanwhile.
    case unfinished
  }

  /// An operation, and the operation that contains it, if the search has found one.
  typealias Waiter = (operation: Operation, enclosing: Operation?)

  private struct Visit {
    let node: WaitNode
    let wait: WaitNode.Wait
    var nextEdge = 0
    /// The earliest open visit that can be reached from this one.
    var lowest: Int
    var isOpen = true
    /// The index of the cycle that the node is on or depends on.
    var cycle: Int?
  }

  /// Whether this search handles a set of operations that wait for each other. Other sets, such as the members of a
  /// nested group, count as finished.
  private let isConcern: ([Waiter]) -> Bool
  private let limit: Int
  private var visits: [Visit] = []
  private var indexes: [WaitNode: Int] = [:]
  private var cycles: [DependencyCycle] = []
  /// The visits, in order, that may still turn out to be on a cycle with earlier ones.
  private var open: [Int] = []
  private var affected: [Int] = []
  /// The operation that contains each member, as far as the search has visited the members of operations.
  private(set) var enclosing: [ObjectIdentifier: Operation] = [:]

  /// Creates a search.
  ///
  /// - Parameters:
  ///   - limit: The largest number of waits that the search visits.
  ///   - isConcern: Whether this search handles a set of operations that wait for each other.
  init(steps limit: Int = .max, isConcern: @escaping ([Waiter]) -> Bool = { _ in true }) {
    self.limit = limit
    self.isConcern = isConcern
  }

  /// Searches for the cycles that `root` is on or depends on.
  mutating func search(from root: Operation) -> Result {
    // Operations are visited at different moments, so changes in between can look like a cycle. A cycle is real if its
    // operations still wait for each other after the last of them has been visited.
    for _ in 0..<3 {
      (visits, indexes, cycles, open, affected, enclosing) = ([], [:], [], [], [], [:])
      guard let isCurrent = attempt(from: WaitNode(root)) else { return .unfinished }
      if affected.isEmpty { return .none }
      if isCurrent, affected.allSatisfy({ visits[$0].node.wait.edition == visits[$0].wait.edition }) {
        return .cycles(
          affected: affected.map { (visits[$0].node.operation, cycles[visits[$0].cycle ?? 0]) }
        )
      }
    }
    return .unfinished
  }

  /// Searches once from `root`.
  ///
  /// - Returns: Whether the cycles still existed at the end. Nil if the search exceeded its limit.
  private mutating func attempt(from root: WaitNode) -> Bool? {
    var isCurrent = true
    var steps = 0
    var path: [Int] = []
    guard visit(root, &path, steps) else { return nil }
    while let top = path.last {
      guard visits[top].nextEdge < visits[top].wait.count else {
        path.removeLast()
        if visits[top].lowest == top { isCurrent = close(from: top) && isCurrent }
        if let previous = path.last { propagate(from: top, to: previous, visits[previous].nextEdge - 1) }
        continue
      }
      steps += 1
      if steps > limit { return nil }
      let edge = visits[top].nextEdge
      visits[top].nextEdge += 1
      let (next, kind) = visits[top].wait[edge]
      if kind == .member { enclosing[ObjectIdentifier(next.operation)] = visits[top].node.operation }
      if let index = indexes[next] {
        propagate(from: index, to: top, edge)
      } else if !next.operation.isFinished {
        if !visit(next, &path, steps) { return nil }
      }
    }
    return isCurrent
  }

  /// Opens a visit to a node.
  ///
  /// - Returns: Whether the search stays within its limit.
  private mutating func visit(_ node: WaitNode, _ path: inout [Int], _ steps: Int) -> Bool {
    if limit != .max, node.waitsForMore(than: limit - steps) { return false }
    let index = visits.count
    visits.append(Visit(node: node, wait: node.wait, lowest: index))
    indexes[node] = index
    open.append(index)
    path.append(index)
    return true
  }

  /// Updates the visit at `index` from the visit at `next`, the target of `edge`.
  private mutating func propagate(from next: Int, to index: Int, _ edge: Int) {
    if visits[next].isOpen {
      visits[index].lowest = min(visits[index].lowest, visits[next].lowest)
    } else if let cycle = visits[next].cycle, visits[index].cycle == nil, visits[index].wait[edge].kind == .dependency {
      // Cancelling a member does not cancel its group, so only dependencies propagate a cycle.
      visits[index].cycle = cycle
    }
  }

  /// Closes a component: all nodes that were opened since `root` wait for each other. Most components are a single
  /// node.
  ///
  /// - Returns: Whether the nodes still wait for each other.
  private mutating func close(from root: Int) -> Bool {
    var component: [Int] = []
    while let index = open.popLast() {
      visits[index].isOpen = false
      component.append(index)
      if index == root { break }
    }
    component.reverse()
    var isCurrent = true
    if component.count > 1, isConcern(component.map(waiter)) {
      if let cycle = cycle(through: root, in: component) {
        cycles.append(cycle)
        for index in component { visits[index].cycle = cycles.count - 1 }
      } else {
        isCurrent = false
        for index in component { visits[index].cycle = 0 }
      }
    }
    affected += component.filter { visits[$0].cycle != nil }
    return isCurrent
  }

  private func waiter(_ index: Int) -> Waiter {
    let operation = visits[index].node.operation
    return (operation, enclosing[ObjectIdentifier(operation)])
  }

  /// Returns the shortest cycle through one node of a component, if it still exists.
  private func cycle(through start: Int, in component: [Int]) -> DependencyCycle? {
    let component = Set(component)
    var previous: [Int: Int] = [:]
    var toVisit = [start]
    var done = 0
    while done < toVisit.count {
      let index = toVisit[done]
      done += 1
      let wait = visits[index].node.wait
      if wait.edition != visits[index].wait.edition { return nil }
      for node in wait.next {
        guard let next = indexes[node], component.contains(next) else { continue }
        if next == start {
          var path = [index]
          while let last = path.last, last != start, let before = previous[last] { path.append(before) }
          // The start and the end of a group are two nodes of one operation.
          let operations = path.reversed().map { visits[$0].node.operation }
          return DependencyCycle(
            operations: operations.indices.filter { $0 == 0 || operations[$0] !== operations[$0 - 1] }.map {
              operations[$0]
            }
          )
        }
        if previous[next] == nil {
          previous[next] = index
          toVisit.append(next)
        }
      }
    }
    return nil
  }
}
