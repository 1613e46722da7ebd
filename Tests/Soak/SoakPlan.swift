/// A world and what is to happen in it, all from a seed: the same for the same seed, on every machine. Only the threads
/// decide what comes first.
struct SoakPlan: Sendable {
  /// When the last actions are carried out.
  static let ticks = 60
  static let domains = 2
  static let keys = ["a", "b", "c", "d", "e"]
  static let sharedKeys = ["shared 0", "shared 1"]

  let seed: UInt64
  /// Negative for no limit. The first two have none.
  let queueLimits: [Int]
  let items: [SoakItem]
  let actions: [SoakAction]
  let homes: [SoakHomePlan]
  let producers: [[SoakEvent]]
  let callers: [SoakCaller]
  /// Who enqueues the operations of the top, and in which order.
  let enqueuers: [[Int]]

  init(seed: UInt64) {
    var maker = SoakPlanMaker(seed: seed)
    maker.makeItems()
    maker.makeActions()
    maker.makeSchedulers()
    self.seed = seed
    queueLimits = maker.queueLimits
    items = maker.items
    actions = maker.actions.sorted { $0.tick < $1.tick }
    homes = maker.homes
    producers = maker.producers
    callers = maker.callers
    enqueuers = maker.enqueuers()
  }

  /// The groups around an item, from the innermost outwards.
  func outer(of index: Int) -> [Int] {
    var result: [Int] = []
    var next = items[index].outer
    while let group = next {
      result.append(group)
      next = items[group].outer
    }
    return result
  }

  func members(of group: Int) -> [SoakItem] { items[(group + 1)..<items[group].end].filter { $0.outer == group } }
}
