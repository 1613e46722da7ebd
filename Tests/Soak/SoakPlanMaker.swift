/// Makes plans in which everything can come to its end, whatever the threads do.
///
/// - What waits for something waits for earlier items only, where a group's end comes after its members: so there are
///   no cycles.
/// - An *open* group's members may wait for what is outside of it. It takes no limited slot, and no key; or what is
///   outside might wait for those. A *closed* one may take both.
/// - Keys of more than one domain are taken by single operations only, as cycles through two domains are not noticed.
/// - Plain operations take no keys.
struct SoakPlanMaker {
  /// Where an item comes to be.
  private struct Surroundings {
    let place: SoakItem.Place
    /// The first item that it may wait for.
    var floor = 0
    var isLimited = false
    var depth = 0
    /// Those it may take.
    var keys = SoakPlan.keys[...]
  }

  var generator: SeededGenerator
  var queueLimits: [Int] = []
  var items: [SoakItem] = []
  var actions: [SoakAction] = []
  var homes: [SoakHomePlan] = []
  var producers: [[SoakEvent]] = []
  var callers: [SoakCaller] = []

  init(seed: UInt64) {
    generator = SeededGenerator(seed: seed)
    queueLimits = [-1, -1, 1, Int.random(in: 2...4, using: &generator)]
  }

  mutating func one(of count: Int) -> Bool { generator.one(of: count) }

  mutating func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &generator) }

  mutating func makeItems() {
    let count = number(20...90)
    while items.count < count {
      let queue = number(0...queueLimits.count)
      if queue == queueLimits.count {
        addItem(Surroundings(place: .scheduler, isLimited: true))
      } else {
        addItem(Surroundings(place: .queue(queue), isLimited: queueLimits[queue] > 0))
      }
    }
  }

  // MARK: Items

  private mutating func addItem(_ surroundings: Surroundings) {
    if surroundings.depth < 3, one(of: 5) { addGroup(surroundings) } else { addLeaf(surroundings) }
  }

  /// Complete ones, that will be enqueued.
  private mutating func earlier(_ surroundings: Surroundings, withValue: Bool = false) -> Int? {
    let candidates = items.indices.suffix(25).filter { index in
      let item = items[index]
      guard index >= surroundings.floor, !withValue || item.hasValue else { return false }
      switch item.coming {
      case .broughtBy, .whenGroupIsCancelled: return false
      case .atFirst, .awaited: return !item.isGroup || item.end > 0
      }
    }
    return candidates.randomElement(using: &generator)
  }

  private mutating func addDependencies(to item: inout SoakItem, _ surroundings: Surroundings) {
    for _ in 0..<number(0...2) { if let other = earlier(surroundings) { item.dependencies.append(other) } }
    if one(of: 15) { item.waitsForGhost = true }
    if one(of: 15) { item.leadsToGhost = true }
  }

  private mutating func addKeys(to item: inout SoakItem, _ surroundings: Surroundings) {
    guard one(of: 4), !surroundings.keys.isEmpty else { return }
    item.keys = Array(surroundings.keys.shuffled(using: &generator).prefix(item.isGroup ? 1 : number(1...2)))
    item.policy = one(of: 5) ? 2 : one(of: 7) ? 1 : 0
    if surroundings.depth == 0, !item.isGroup, one(of: 3) { item.domain = 1 }
  }

  private mutating func addLeaf(_ surroundings: Surroundings) {
    var item = SoakItem(index: items.count, place: surroundings.place, kind: kind())
    item.isFailing = one(of: 10)
    let isPlain = item.isPlain
    switch item.kind {
    case .map, .asynchronousMap, .flatMap, .adapted:
      if let input = earlier(surroundings, withValue: true) { item.inputs = [input] } else { item.kind = .task }
    case .zip:
      if let first = earlier(surroundings, withValue: true), let second = earlier(surroundings, withValue: true) {
        item.inputs = [first, second]
      } else {
        item.kind = .task
      }
    case .collect, .work:
      for _ in 0..<number(0...3) {
        if let input = earlier(surroundings, withValue: true) { item.inputs.append(input) }
      }
      item.isInputOptional = one(of: 2)
    default: break
    }
    if item.way == .failing || item.way == .failingElsewhere { item.isFailing = true }
    if case .retry(let failures) = item.kind { item.isFailing = failures == 3 }
    let isInGroup = surroundings.depth > 0
    if isPlain {
      item.isFailing = false
      // The plain `addOperation` may stall when it comes while a dependency finishes.
      if isInGroup { for _ in 0..<number(0...2) { item.dependencies += earlier(surroundings).map { [$0] } ?? [] } }
    } else {
      addDependencies(to: &item, surroundings)
      addKeys(to: &item, surroundings)
      if one(of: 6) { item.condition = SoakItem.Condition.allCases.randomElement(using: &generator) }
      if item.way == .never || item.way == .late || one(of: 10) { item.timeout = number(1...40) }
      if surroundings.place == .scheduler || isInGroup || !item.keys.isEmpty {
      } else if one(of: 6) {
        item.coming = .awaited(cancelledAt: one(of: 2) ? number(0...SoakPlan.ticks) : nil)
      }
    }
    items.append(item)
    if case .group(let group) = surroundings.place, one(of: 8) { addNewcomer(to: group, broughtBy: item) }
  }

  private mutating func addNewcomer(to group: Int, broughtBy item: SoakItem) {
    var newcomer = SoakItem(index: items.count, place: .group(group), kind: .work(one(of: 3) ? .failing : .elsewhere))
    newcomer.isFailing = newcomer.way == .failing
    // Its group may have finished when one that has timed out still brings somebody.
    let brings = item.timeout == nil && (item.way == .atOnce || item.way == .twice)
    newcomer.coming = brings ? .broughtBy(item.index) : .whenGroupIsCancelled
    items.append(newcomer)
  }

  private mutating func kind() -> SoakItem.Kind {
    switch number(0...19) {
    case 0: .task
    case 1: .map
    case 2: .asynchronousMap
    case 3: .zip
    case 4: .collect
    case 5: .flatMap
    case 6: .adapted
    case 7: .delay
    case 8, 9: .plain
    case 10, 11: .retry(failures: number(0...3))
    default: .work(SoakItem.Way.allCases.randomElement(using: &generator) ?? .atOnce)
    }
  }

  private mutating func addGroup(_ surroundings: Surroundings) {
    let index = items.count
    var group = SoakItem(index: index, place: surroundings.place, kind: .group)
    let isOpen = !surroundings.isLimited && one(of: 2)
    addDependencies(to: &group, surroundings)
    if !isOpen { addKeys(to: &group, surroundings) }
    if one(of: 3) { group.limit = number(1...3) }
    group.cancelsOnFailure = one(of: 4)
    group.isSuspended = one(of: 5)
    group.staysOpen = one(of: 4)
    if one(of: 10) { group.timeout = number(5...50) }
    items.append(group)
    // Those inside take the key of the group, or later ones: so no two groups wait for each other.
    let names = surroundings.keys.drop { name in group.keys.first.map { name < $0 } ?? false }
    let inside = Surroundings(
      place: .group(index),
      floor: isOpen ? surroundings.floor : index + 1,
      isLimited: surroundings.isLimited || group.limit > 0 || !group.keys.isEmpty || !isOpen,
      depth: surroundings.depth + 1,
      keys: names
    )
    for _ in 0..<number(0...7) { addItem(inside) }
    group.end = items.count
    items[index] = group
  }
}
