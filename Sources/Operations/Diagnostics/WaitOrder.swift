/// In which order things that wait for others can be done, and which of them never can, because they wait in a circle.
///
/// Things are numbers here. O(n + e), without recursion.
struct WaitOrder {
  /// Those that can be done, each after all that it waits for.
  private(set) var order: [Int] = []
  /// Each one waits for the next, and the last for the first. Whatever is not in ``order`` is in one of them, or waits
  /// for something that is.
  private(set) var circles: [[Int]] = []
  /// Who waits for each.
  let dependents: [[Int]]

  /// - Parameters:
  ///   - waits: What each one waits for.
  ///   - needed: How many of these are enough. Nil is all of them.
  ///   - rank: In which order those are done that wait for nothing; whatever they make possible comes before the next.
  ///   So who
  ///     needs one comes as early as the first of those that it waits for.
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
    if order.count < waits.count { findCircles(waits, missing) }
  }

  /// Whoever is left waits for somebody who is left: a walk along that comes back to itself in the end.
  private mutating func findCircles(_ waits: [[Int]], _ missing: [Int]) {
    var walkOf = [Int](repeating: -1, count: waits.count)
    for start in waits.indices where missing[start] > 0 && walkOf[start] < 0 {
      var path: [Int] = []
      var next = start
      while walkOf[next] < 0 {
        walkOf[next] = start
        path.append(next)
        next = waits[next].first { missing[$0] > 0 } ?? next
      }
      if walkOf[next] == start { circles.append(Array(path.drop { $0 != next })) }
    }
  }
}
