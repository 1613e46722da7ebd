/// A topological order of items that wait for each other, and the cycles among them, in O(n + e) and without recursion.
struct WaitOrder {
  /// The items that can complete, each after the items that it needs.
  private(set) var order: [Int] = []
  /// The other items, in sets that wait for each other, or of one item that waits for such items. Each set comes after
  /// those that it waits for. On its cycle, every item waits for the next, and the last for the first. The cycle is
  /// empty for one item that is on none.
  private(set) var stuck: [(items: [Int], cycle: [Int])] = []
  let dependents: [[Int]]

  /// An item needs all of the items that it waits for, the number in `needed`, or what its demand for a key says. All
  /// items that can complete after one rank of the items that wait for nothing precede those of the next rank. An item
  /// that needs one of several items therefore follows the first of them.
  init(
    _ waits: [[Int]],
    needed: (Int) -> Int? = { _ in nil },
    demands: [Int: KeyDemand] = [:],
    rank: (Int) -> Int = { _ in 0 }
  ) {
    var dependents = [[Int]](repeating: [], count: waits.count)
    for (waiter, waited) in waits.enumerated() { for one in waited { dependents[one].append(waiter) } }
    self.dependents = dependents
    var (missing, demands) = (waits.indices.map { min(needed($0) ?? .max, waits[$0].count) }, demands)
    let free = missing.indices.filter { missing[$0] == 0 }
    var done = 0
    for (_, free) in Dictionary(grouping: free, by: rank).sorted(by: { $0.key < $1.key }) {
      order += free
      while done < order.count {
        for dependent in dependents[order[done]] where missing[dependent] > 0 {
          missing[dependent] -= 1
          if demands[dependent]?.end(of: order[done]) == true { missing[dependent] = 0 }
          if missing[dependent] == 0 { order.append(dependent) }
        }
        done += 1
      }
    }
    if order.count < waits.count { findCycles(waits, missing.indices.filter { missing[$0] > 0 }) }
  }

  var cycles: [[Int]] { stuck.map(\.cycle).filter { !$0.isEmpty } }

  private mutating func findCycles(_ waits: [[Int]], _ items: [Int]) {
    let unvisited = -1
    var setOf = [Int?](repeating: nil, count: waits.count)
    for item in items { setOf[item] = unvisited }
    var (positions, seen) = (setOf, setOf.map { $0 == nil })
    // In reverse, each set has an item that precedes all items of the sets that wait for it.
    let left = postorder(from: items, isNew: { !exchange(&seen[$0], with: true) }, next: { dependents[$0] })
    for root in left.reversed() where setOf[root] == unvisited {
      var set = [root]
      setOf[root] = stuck.count
      var done = 0
      while done < set.count {
        for next in waits[set[done]] where setOf[next] == unvisited {
          setOf[next] = stuck.count
          set.append(next)
        }
        done += 1
      }
      // A walk along the waits inside the set enters a cycle, unless the set is one item that is on none.
      var path: [Int] = []
      var next = set.min()
      while let item = next, positions[item] == unvisited {
        positions[item] = path.count
        path.append(item)
        next = waits[item].first { setOf[$0] == stuck.count }
      }
      stuck.append((set, next.flatMap { positions[$0] }.map { Array(path[$0...]) } ?? []))
    }
  }
}
