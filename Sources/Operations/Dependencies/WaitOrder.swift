/// A topological order of items that wait for each other, and the cycles among them, in O(n + e) and without recursion.
struct WaitOrder {
  /// The items that can complete, each after the items that it needs.
  private(set) var order: [Int] = []
  /// The other items, in sets that wait for each other, or of one item that waits for such items. Each set comes after
  /// those that it waits for. On its cycle, every item waits for the next, and the last for the first. The cycle is
  /// empty for one item that is on none.
  private(set) var stuck: [(items: [Int], cycle: [Int])] = []
  /// For each stuck item, the index of its set.
  private(set) var setOf: [Int: Int] = [:]
  let dependents: [[Int]]
  /// For each item, the number of those that it still needs.
  private var missing: [Int]
  private var demands: [Int: KeyDemand]

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
    self.demands = demands
    missing = waits.indices.map { min(needed($0) ?? .max, waits[$0].count) }
    let free = missing.indices.filter { missing[$0] == 0 }
    for (_, free) in Dictionary(grouping: free, by: rank).sorted(by: { $0.key < $1.key }) { complete(free) }
    if order.count < waits.count { findCycles(waits) }
  }

  var cycles: [[Int]] { stuck.map(\.cycle).filter { !$0.isEmpty } }

  /// Returns the items of its set that can complete once a stuck item has ended, in a time that depends on the set only.
  mutating func items(after ended: Int) -> [Int] {
    let (set, count) = (setOf[ended], order.count)
    let former = (set.map { stuck[$0].items } ?? []).map { ($0, missing[$0], demands[$0]) }
    missing[ended] = 0
    complete([ended], in: set)
    for (item, number, demand) in former {
      missing[item] = number
      demands[item] = demand
    }
    defer { order.removeLast(order.count - count) }
    return Array(order[(count + 1)...])
  }

  private mutating func complete(_ items: [Int], in set: Int? = nil) {
    var done = order.count
    order += items
    while done < order.count {
      for dependent in dependents[order[done]] where missing[dependent] > 0 && setOf[dependent] == set {
        missing[dependent] -= 1
        if demands[dependent]?.end(of: order[done]) == true { missing[dependent] = 0 }
        if missing[dependent] == 0 { order.append(dependent) }
      }
      done += 1
    }
  }

  private mutating func findCycles(_ waits: [[Int]]) {
    var isNew = missing.map { $0 > 0 }
    // In reverse, each set has an item that precedes all items of the sets that wait for it.
    let items = isNew.indices.filter { isNew[$0] }
    let left = postorder(from: items, isNew: { exchange(&isNew[$0], with: false) }, next: { dependents[$0] })
    for root in left.reversed() where setOf[root] == nil {
      var set = [root]
      setOf[root] = stuck.count
      var done = 0
      while done < set.count {
        for next in waits[set[done]] where missing[next] > 0 && setOf[next] == nil {
          setOf[next] = stuck.count
          set.append(next)
        }
        done += 1
      }
      // A walk along the waits inside the set enters a cycle, unless the set is one item that is on none.
      var path: [Int] = []
      var positions: [Int: Int] = [:]
      var next = set.min()
      while let item = next, positions[item] == nil {
        positions[item] = path.count
        path.append(item)
        next = waits[item].first { setOf[$0] == stuck.count }
      }
      stuck.append((set, next.flatMap { positions[$0] }.map { Array(path[$0...]) } ?? []))
    }
  }
}
