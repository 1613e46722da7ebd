import Foundation

/// Operations that wait for each other.
struct DependencyCycle {
  /// Each waits for the next, and the last for the first.
  let operations: [Operation]

  private static let namedOperations = 16

  /// The names in order, the first one again at the end.
  var description: String {
    let names = operations.prefix(Self.namedOperations).map(\.displayName)
    let others = operations.count - names.count
    return (names + (others > 0 ? ["… \(others) more …"] : []) + names.prefix(1)).joined(separator: " → ")
  }
}

/// Looks for cycles among everything that an operation waits for, directly or not. A group waits for its members.
///
/// O(n + e), without recursion (Tarjan's algorithm). Finished operations are not looked at: they wait for nothing.
struct WaitSearch {
  enum Result {
    /// - Parameter doomed: Each operation that is on a cycle, or depends on one that is, with that cycle; what depends
    ///   on another comes after it.
    case cycles(doomed: [(operation: Operation, cycle: DependencyCycle)])
    case none
    /// There was more to look at than allowed, or the operations changed meanwhile.
    case unfinished
  }

  /// One of several operations that wait for each other, and what it runs inside of, as far as the search knows.
  typealias Waiter = (operation: Operation, enclosing: Operation?)

  private struct Visit {
    let node: WaitNode
    let wait: WaitNode.Wait
    var nextEdge = 0
    /// The earliest visit that can be reached from here and is still open.
    var lowest: Int
    var isOpen = true
    /// Which of the cycles it is on, or depends on.
    var cycle: Int?
  }

  /// Whether operations that wait for each other are the concern of this search. Others, such as the members of a nested
  /// group, count as finished.
  private let isConcern: ([Waiter]) -> Bool
  private let limit: Int
  private var visits: [Visit] = []
  private var indexes: [WaitNode: Int] = [:]
  private var cycles: [DependencyCycle] = []
  /// Visited in this order, and not known yet to be on no cycle with earlier ones.
  private var open: [Int] = []
  private var doomed: [Int] = []
  /// In which operation one runs, as far as the search has come through the members of that.
  private(set) var enclosing: [ObjectIdentifier: Operation] = [:]

  /// - Parameter steps: How many waits are looked at, at most.
  init(steps limit: Int = .max, isConcern: @escaping ([Waiter]) -> Bool = { _ in true }) {
    self.limit = limit
    self.isConcern = isConcern
  }

  mutating func search(from root: Operation) -> Result {
    // Each operation is looked at at another moment, and what changes meanwhile may look like a cycle. It is one if all
    // of its operations still wait as they did when the last of them was looked at.
    for _ in 0..<3 {
      (visits, indexes, cycles, open, doomed, enclosing) = ([], [:], [], [], [], [:])
      guard let isCurrent = attempt(from: WaitNode(root)) else { return .unfinished }
      if doomed.isEmpty { return .none }
      if isCurrent, doomed.allSatisfy({ visits[$0].node.wait.edition == visits[$0].wait.edition }) {
        return .cycles(
          doomed: doomed.map { (visits[$0].node.operation, cycles[visits[$0].cycle ?? 0]) }
        )
      }
    }
    return .unfinished
  }

  /// - Returns: Whether the cycles were still there at the end. Nil if there was more to look at than allowed.
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

  private mutating func visit(_ node: WaitNode, _ path: inout [Int], _ steps: Int) -> Bool {
    if limit != .max, node.waitsForMore(than: limit - steps) { return false }
    let index = visits.count
    visits.append(Visit(node: node, wait: node.wait, lowest: index))
    indexes[node] = index
    open.append(index)
    path.append(index)
    return true
  }

  /// What is known of `next`, by the edge of `index` that leads there.
  private mutating func propagate(from next: Int, to index: Int, _ edge: Int) {
    if visits[next].isOpen {
      visits[index].lowest = min(visits[index].lowest, visits[next].lowest)
    } else if let cycle = visits[next].cycle, visits[index].cycle == nil, visits[index].wait[edge].kind == .dependency {
      // A group waits for a member, but is not cancelled because the member is.
      visits[index].cycle = cycle
    }
  }

  /// Everything that was opened since `root` waits for each other: one point alone, mostly.
  ///
  /// - Returns: Whether they still do.
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
    doomed += component.filter { visits[$0].cycle != nil }
    return isCurrent
  }

  private func waiter(_ index: Int) -> Waiter {
    let operation = visits[index].node.operation
    return (operation, enclosing[ObjectIdentifier(operation)])
  }

  /// The shortest cycle through one of the points that wait for each other, if it is still there.
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
          // The start and the end of a group are two points of one operation.
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
