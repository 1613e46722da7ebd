/// A topological order of items that wait for each other, and the cycles among them.
///
/// Items are identified by indices. Computing the order costs O(n + e) for n items with e waits, without recursion.
struct WaitOrder {
  /// The items that can complete, each after the items that it needs.
  private(set) var order: [Int] = []
  /// The cycles. Every item of a cycle waits for the next, and the last waits for the first.
  ///
  /// An item that is missing from ``order`` is in a cycle, or waits for an item of a cycle, directly or indirectly.
  private(set) var cycles: [[Int]] = []
  /// The items that wait for each item.
  let dependents: [[Int]]

  /// Computes the order and the cycles.
  ///
  /// - Parameters:
  ///   - waits: The items that each item waits for.
  ///   - needed: The number of awaited items that must complete before an item can, or nil for all of them.
  ///   - rank: The rank of each item that waits for nothing. All items that can complete after one rank precede the
  ///     items of the next rank. An item that needs only one of several items therefore follows the first of them.
  init(_ waits: [[Int]], needed: (Int) -> Int? = { _ in nil }, rank: (Int) -> Int = { _ in 0 }) {
    var dependents = [[Int]](repeating: [], count: waits.count)
    for (waiter, waited) in waits.enumerated() {
      for one in waited { dependents[one].append(waiter) }
    }
    self.dependents = dependents
    var missing = waits.indices.map { min(needed($0) ?? .max, waits[$0].count) }
    let free = missing.indices.filter { missing[$0] == 0 }
    var done = 0
    for (_, free) in Dictionary(grouping: free, by: rank).sorted(by: { $0.key < $1.key }) {
      order += free
      while done < order.count {
        for dependent in dependents[order[done]] where missing[dependent] > 0 {
          missing[dependent] -= 1
          if missing[dependent] == 0 { order.append(dependent) }
        }
        done += 1
      }
    }
    if order.count < waits.count { findCycles(waits, missing) }
  }

  /// Finds the cycles. Every remaining item waits for a remaining item, so a walk along these waits enters a cycle.
  private mutating func findCycles(_ waits: [[Int]], _ missing: [Int]) {
    var walkOf = [Int](repeating: -1, count: waits.count)
    for start in waits.indices where missing[start] > 0 && walkOf[start] < 0 {
      var path: [Int] = []
      var next = start
      while walkOf[next] < 0 {
        walkOf[next] = start
        path.append(next)
        next = waits[next].first { missing[$0] > 0 } ?? next
      }
      if walkOf[next] == start { cycles.append(Array(path.drop { $0 != next })) }
    }
  }
}
