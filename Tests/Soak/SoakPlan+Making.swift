import Operations

extension SoakPlan {
  /// The place of an item, and what it may wait for and take there.
  private struct Surroundings {
    let place: SoakItem.Place
    /// The first item that it may wait for.
    var floor = 0
    var isLimited = false
    var depth = 0
    var keys = SoakPlan.keys[...]
  }

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

  private mutating func addItem(_ surroundings: Surroundings) {
    if surroundings.depth < 3, one(of: 5) { addGroup(surroundings) } else { addLeaf(surroundings) }
  }

  /// Draws complete items that will be enqueued, or nothing if there are none.
  private mutating func earlier(_ count: Int, _ surroundings: Surroundings, withValue: Bool = false) -> [Int] {
    let candidates = items.indices.suffix(25).filter { index in
      let item = items[index]
      return index >= surroundings.floor && (item.hasValue || !withValue) && !item.isNewcomer
        && (!item.isGroup || item.end > 0)
    }
    return (0..<count).compactMap { _ in candidates.randomElement(using: &generator) }
  }

  private mutating func addDependencies(to item: inout SoakItem, _ surroundings: Surroundings) {
    item.dependencies = earlier(number(0...2), surroundings)
    item.waitsForGhost = one(of: 15)
    item.leadsToGhost = one(of: 15)
  }

  private mutating func addKeys(to item: inout SoakItem, _ surroundings: Surroundings) {
    guard one(of: 4), !surroundings.keys.isEmpty else { return }
    item.keys = Array(surroundings.keys.shuffled(using: &generator).prefix(item.isGroup ? 1 : number(1...2)))
    item.policy = one(of: 5) ? .drop : one(of: 7) ? .replace : .wait
    if !item.isGroup, item.policy == .wait, one(of: 2) { item.claim = claim() }
    if surroundings.depth == 0, !item.isGroup, one(of: 3) { item.domain = 1 }
  }

  private mutating func claim() -> (limit: Int, weight: Int) {
    let limit = [2, 3, .max - 1, .max][number(0...3)]
    return (limit, [1, 2, limit - 1, limit][number(0...3)])
  }

  private mutating func addLeaf(_ surroundings: Surroundings) {
    var item = SoakItem(index: items.count, place: surroundings.place, kind: kind())
    item.isFailing = one(of: 10)
    switch item.kind {
    case .map, .asynchronousMap, .flatMap, .adapted, .zip:
      let count = if case .zip = item.kind { 2 } else { 1 }
      item.inputs = earlier(count, surroundings, withValue: true)
      if item.inputs.isEmpty { item.kind = .task }
    case .collect, .work:
      item.inputs = earlier(number(0...3), surroundings, withValue: true)
      item.isInputOptional = one(of: 2)
    case .retry(let failures): item.isFailing = failures == 3
    case .plain: item.isFailing = false
    default: break
    }
    if item.way == .failing || item.way == .failingElsewhere { item.isFailing = true }
    let isInGroup = surroundings.depth > 0
    if item.isPlain {
      // The plain `addOperation` may stall when it comes while a dependency finishes.
      if isInGroup { item.dependencies = earlier(number(0...2), surroundings) }
    } else {
      addDependencies(to: &item, surroundings)
      addKeys(to: &item, surroundings)
      if one(of: 6) { item.condition = SoakItem.Condition.allCases.randomElement(using: &generator) }
      if item.way == .never || item.way == .late || one(of: 10) { item.timeout = number(1...40) }
      if surroundings.place != .scheduler, !isInGroup, item.keys.isEmpty, one(of: 6) {
        item.coming = .awaited(cancelledAfter: one(of: 2) ? number(0...SoakPlan.ticks) : nil)
      }
    }
    items.append(item)
    if case .group(let group) = surroundings.place, one(of: 8) { addNewcomer(to: group, broughtBy: item) }
  }

  private mutating func addNewcomer(to group: Int, broughtBy item: SoakItem) {
    var newcomer = SoakItem(index: items.count, place: .group(group), kind: .work(one(of: 3) ? .failing : .elsewhere))
    newcomer.isFailing = newcomer.way == .failing
    // The group may have finished when a member that has timed out still adds newcomers.
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
    // The members take the key of the group, or later ones, so no two groups wait for each other.
    let inside = Surroundings(
      place: .group(index),
      floor: isOpen ? surroundings.floor : index + 1,
      isLimited: surroundings.isLimited || group.limit > 0 || !group.keys.isEmpty || !isOpen,
      depth: surroundings.depth + 1,
      keys: surroundings.keys.drop { name in group.keys.first.map { name < $0 } ?? false }
    )
    for _ in 0..<number(0...7) { addItem(inside) }
    group.end = items.count
    items[index] = group
  }

  // MARK: Actions

  mutating func makeActions() {
    for item in items {
      if item.isSuspended { act(.resume(item.index)) }
      if item.staysOpen { act(.close(item.index)) }
      if item.waitsForGhost { act(.takeGhostBack(item.index)) }
      // A group without a limit may hold members that rely on that.
      if item.limit > 0, one(of: 3) { act(.limit(item.index, number(1...4))) }
      if item.way == .whenCancelled {
        // Either by itself, or by way of the group around it.
        if let group = item.outer, one(of: 2) { cancel(group) } else { cancel(item.index) }
      } else if one(of: item.isGroup ? 6 : 12) {
        cancel(item.index)
      }
      if item.isPlain { continue }
      let brings = items.contains { $0.coming == .broughtBy(item.index) }
      if item.hasValue, !brings, one(of: 25) { act(.finish(item.index)) }
      if one(of: 20) { act(.rename(item.index)) }
    }
    for _ in 0..<number(0...3) { act(.lookAtEverything) }
  }

  private mutating func act(_ deed: SoakDeed) { actions.append((number(0...SoakPlan.ticks), deed)) }

  private mutating func cancel(_ index: Int) { act(.cancel(index, threads: number(1...3))) }

  mutating func makeEnqueuers() {
    let top = items.filter { $0.outer == nil }.map(\.index)
    for index in top.shuffled(using: &generator) {
      let thread = number(0...2)
      enqueuers[thread].append(index)
    }
  }

  // MARK: Schedulers

  mutating func makeSchedulers() {
    homes[2].capacity = capacity()
    if one(of: 2) { homes[3].shutdown = (number(5...60), one(of: 2) ? .drain : .discard) }
    if one(of: 4) { homes[3].capacity = capacity() }
    for _ in 0..<number(1...3) { producers.append((0..<number(20...120)).map { _ in event() }) }
  }

  private mutating func capacity() -> EventCapacity {
    EventCapacity(number(1...6), whenFull: EventCapacity.Policy.allCases[number(0...3)])
  }

  private mutating func event() -> (home: Int, event: SoakEvent) {
    let home = number(0...3)
    let event: SoakEvent =
      switch number(0...19) {
      case 0, 1: .coalesced
      case 2: .object
      case 3: homes[home].takesAll ? .operation : .schedule
      case 4: homes[home].takesAll ? .asynchronousOperation : .schedule
      case 5: .delayed(ticks: number(1...30), isCancelled: homes[home].takesAll && one(of: 4))
      // The clock does not reach that time.
      case 6: .delayed(ticks: 1_000_000_000, isCancelled: true)
      case 7: .run(isCancelled: one(of: 4))
      case 8: .send(isCancelled: one(of: 4))
      case 9: .actor
      case 10, 11: .wait((0..<number(0...3)).map { _ in number(0...3) })
      case 12: .delivered(to: number(0...3))
      default: .schedule
      }
    return (home, event)
  }
}
