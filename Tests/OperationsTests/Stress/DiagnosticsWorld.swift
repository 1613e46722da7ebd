import Foundation
import OperationsTestSupport
import Soak

@testable import Operations

/// Random operations, some of which can never run, and a simple model of which ones can.
final class DiagnosticsWorld {
  enum Kind { case instant, held, plain, condition, retry, group }

  enum Place: Equatable {
    case queue(Int)
    case group(Int)
    case missing

    /// The index of the group, if it is one.
    var group: Int? { if case .group(let index) = self { index } else { nil } }
  }

  final class Item {
    let index: Int
    let kind: Kind
    let operation: Operation
    var place: Place
    var dependencies: [Int] = []
    var keys: [ExclusivityKey] = []
    var members: [Int] = []
    /// Open when it executes or is evaluated, which lasts until its gate is opened.
    let (gate, begun): (Gate, Gate)

    init(_ index: Int, _ kind: Kind, _ place: Place, _ operation: Operation, _ gate: Gate, _ begun: Gate) {
      (self.index, self.kind, self.place, self.gate, self.begun) = (index, kind, place, gate, begun)
      self.operation = operation.named("\(index)")
    }

    var own: AsyncOperation? { operation as? AsyncOperation }
    var group: GroupOperation? { operation as? GroupOperation }
    var name: String { "\(index)" }
    var isMember: Bool { place.group != nil }
    /// Whether it has a slot.
    var isRunning: Bool {
      !operation.isFinished && (operation.isExecuting || (kind == .condition && begun.isOpen))
    }
    var isWaiting: Bool { !operation.isFinished && !isRunning }
  }

  private var generator: SeededGenerator
  private(set) var items: [Item] = []
  private(set) var queues: [OperationQueue] = []
  /// The first three operations of the ring, of which each waits for the next.
  private(set) var ring: [Int] = []
  private let domain = ExclusivityDomain()
  let live = LiveCount()
  /// The indices of the items that have executed.
  let journal = Journal<Int>()
  let tracer = OperationTracer()
  let otherTracer = OperationTracer()

  // MARK: The beginning

  init(seed: UInt64) {
    generator = SeededGenerator(seed: seed)
    for index in 0..<4 {
      let queue = OperationQueue.named("queue \(index)")
      if index == 1 { queue.maxConcurrentOperationCount = 1 }
      if index == 2 { queue.maxConcurrentOperationCount = Int.random(in: 2...3, using: &generator) }
      if index == 3 || one(of: 8) { queue.isSuspended = one(of: 2) }
      queues.append(queue)
    }
    for _ in 0..<Int.random(in: 6...45, using: &generator) { addItem() }
    if one(of: 3) { closeRing() }
  }

  private func one(of count: Int) -> Bool { Int.random(in: 0..<count, using: &generator) == 0 }

  private func addItem() {
    let index = items.count
    let groups = items.filter { $0.kind == .group }.map(\.index)
    var place = Place.queue(Int.random(in: 0..<queues.count, using: &generator))
    if let group = groups.randomElement(using: &generator), one(of: 2) {
      place = .group(group)
      items[group].members.append(index)
    } else if one(of: 9) {
      place = .missing
    }
    let kinds: [Kind] = [.instant, .instant, .instant, .held, .plain, .condition, .retry, .group, .group]
    let item = makeItem(kinds.randomElement(using: &generator)!, place)
    if item.kind != .group, item.kind != .plain, place == .queue(0), one(of: 2) {
      item.keys = one(of: 3) ? ["a", "b"] : one(of: 2) ? ["a"] : ["b"]
    }
    for _ in 0..<Int.random(in: 0...2, using: &generator) where index > 0 {
      let other = Int.random(in: 0..<index, using: &generator)
      if item.dependencies.contains(other) || contains(other, index) { continue }
      item.dependencies.append(other)
      if hasFixedCycle { item.dependencies.removeLast() } else { item.operation.waits(for: items[other].operation) }
    }
  }

  @discardableResult
  private func makeItem(_ kind: Kind, _ place: Place) -> Item {
    let (gate, begun) = (Gate(), Gate())
    items.append(Item(items.count, kind, place, makeOperation(items.count, kind, gate, begun), gate, begun))
    return items.last!
  }

  private func makeOperation(_ index: Int, _ kind: Kind, _ gate: Gate, _ begun: Gate) -> Operation {
    let (journal, token) = (journal, LiveCount.Token(live))
    let execute = { @Sendable (finish: @escaping @Sendable () -> Void) in
      journal.write(index)
      begun.open()
      gate.whenOpen { withExtendedLifetime(token) { finish() } }
    }
    if kind == .instant || kind == .plain { gate.open() }
    let own = AsyncBlockOperation { operation in execute { operation.finish() } }
    switch kind {
    case .instant, .held: return own
    case .plain: return BlockOperation { execute {} }
    case .condition:
      own.addCondition(
        OperationCondition(name: "gate") { _ in
          begun.open()
          await gate.opened()
        }
      )
      return own
    case .retry:
      return RetryOperation(attempts: 2) { _ in
        AsyncBlockOperation { operation in execute { operation.finish() } }.named("attempt of \(index)")
      }
    case .group:
      let group = CountedGroup(live, [])
      if one(of: 5) { group.isSuspended = true }
      if one(of: 4) { group.maxConcurrentOperationCount = Int.random(in: 1...2, using: &generator) }
      group.addObserver(OperationObserver(didStart: { _ in journal.write(index) }))
      return group
    }
  }

  private func contains(_ group: Int, _ item: Int) -> Bool {
    sequence(first: item) { self.items[$0].place.group }.dropFirst().contains(group)
  }

  /// Whether ends, members and beginnings wait for each other, whichever have slots.
  private var hasFixedCycle: Bool {
    let count = items.count
    var waits = items.map { $0.members + [count + $0.index] }
    waits += items.map { item in item.dependencies + (item.place.group.map { [count + $0] } ?? []) }
    return WaitOrder(waits).order.count < waits.count
  }

  /// Three operations that wait for each other, and one that waits for them.
  private func closeRing() {
    let first = items.count
    for _ in 0..<4 { makeItem(.instant, .queue(0)) }
    for (one, other) in [(first, first + 1), (first + 1, first + 2), (first + 2, first), (first + 3, first)] {
      items[one].operation.waits(for: items[other].operation)
      items[one].dependencies.append(other)
    }
    ring = [first, first + 1, first + 2]
  }

  func add() {
    for item in items { if let group = item.place.group { items[group].group!.addOperation(item.operation) } }
    tracer.trace(items.compactMap { $0.isMember ? nil : $0.own })
    for item in items.shuffled(using: &generator) {
      if item.kind == .group, one(of: 2) { otherTracer.trace(item.own!) }
      guard case .queue(let number) = item.place else { continue }
      switch item.own {
      case let own? where !item.keys.isEmpty: queues[number].addOperation(own.exclusive(item.keys, in: domain))
      case let own? where !one(of: 4): queues[number].addOperation(own)
      default: queues[number].addByFoundation(item.operation)
      }
    }
  }

  func cancelSome() {
    for item in items where item.kind != .group && item.kind != .retry && one(of: 12) {
      if item.kind != .instant || !item.keys.isEmpty || ring.contains(item.index) { continue }
      if item.isWaiting { item.operation.cancel() }
    }
  }

  // MARK: The end

  /// Gives every operation what it waits for.
  func supply() {
    for item in items {
      if item.place == .missing {
        item.place = .queue(0)
        queues[0].addByFoundation(item.operation)
      }
      item.gate.open()
      item.group?.isSuspended = false
      item.group?.maxConcurrentOperationCount = -1
    }
    if !ring.isEmpty { items[ring[0]].operation.removeDependency(items[ring[1]].operation) }
    for queue in queues { (queue.maxConcurrentOperationCount, queue.isSuspended) = (-1, false) }
  }

  // MARK: The model

  func unfinishedDependencies(_ item: Item) -> [Item] {
    item.operation.isCancelled ? [] : item.dependencies.map { items[$0] }.filter { !$0.operation.isFinished }
  }

  func outermostPlace(of item: Item) -> Place {
    item.place.group.map { outermostPlace(of: items[$0]) } ?? item.place
  }

  private func place(_ place: Place) -> (limit: Int, isSuspended: Bool, members: [Item]) {
    let members = items.filter { $0.place == place }
    switch place {
    case .queue(let index): return (queues[index].maxConcurrentOperationCount, queues[index].isSuspended, members)
    case .group(let index):
      let group = items[index].group!
      return (group.maxConcurrentOperationCount, group.isSuspended, members)
    case .missing: return (-1, true, [])
    }
  }

  private func hasBegun(_ place: Place) -> Bool {
    place.group.map { items[$0].operation.isExecuting } ?? true
  }

  /// Whether the operations with which it shares a key, directly or through others, include one that has a slot.
  func isKeptBack(_ item: Item) -> Bool {
    if item.keys.isEmpty || item.operation.isCancelled { return false }
    var (reached, toDo) = (Set([item.index]), [item])
    while let next = toDo.popLast() {
      for other in items where !other.keys.isEmpty && !Set(other.keys).isDisjoint(with: next.keys) {
        if other.isRunning { return true }
        let isAsking = other.isWaiting && unfinishedDependencies(other).isEmpty
        if isAsking, reached.insert(other.index).inserted { toDo.append(other) }
      }
    }
    return false
  }

  /// How far each operation has come.
  var steps: [Int] { items.map { $0.operation.isFinished ? 2 : $0.isRunning ? 1 : 0 } }

  /// An operation that is about to proceed.
  var moving: Item? {
    items.first { item in
      if item.operation.isFinished { return false }
      if item.isRunning {
        switch item.kind {
        case .instant, .plain: return true
        case .held, .retry, .condition: return !item.begun.isOpen || item.gate.isOpen
        case .group:
          let isDone = item.members.allSatisfy { items[$0].operation.isFinished }
          return isDone && !(item.group!.isSuspended && item.members.isEmpty)
        }
      }
      let place = place(item.place)
      if place.isSuspended || !hasBegun(item.place) || !unfinishedDependencies(item).isEmpty { return false }
      let taken = place.members.count { $0.isRunning }
      return (place.limit < 0 || taken < place.limit) && !isKeptBack(item)
    }
  }

  /// The best or the worst cause that may be reported for the end of each item, and then for the beginning of each.
  func ranks(optimistic: Bool) -> [Int] {
    let count = items.count
    var ranks = [Int](repeating: 10, count: 2 * count)
    func beginningRank(_ item: Item) -> Int {
      let rank = fullRank(item)
      // Where a plain member is can only be found through its group, and that may be nowhere.
      guard item.own == nil, outermostPlace(of: item) == .missing else { return rank }
      let other = unfinishedDependencies(item).map { ranks[$0.index] }.max() ?? 6
      return optimistic ? min(rank, other) : max(rank, other)
    }
    func fullRank(_ item: Item) -> Int {
      var waits = unfinishedDependencies(item).map { ranks[$0.index] }
      if let group = item.place.group, !hasBegun(item.place) { waits.append(ranks[count + group]) }
      if let worst = waits.max() { return worst }
      if isKeptBack(item) { return 3 }
      if item.place == .missing { return item.own == nil || item.operation.isCancelled ? 6 : 9 }
      let place = place(item.place)
      if place.isSuspended { return 8 }
      let holders = place.members.filter(\.isRunning).map { ranks[$0.index] }
      let best = holders.min() ?? 1
      return optimistic ? best : best == 10 ? 10 : holders.filter { $0 < 10 }.max() ?? 1
    }
    func endRank(_ item: Item) -> Int {
      if item.operation.isFinished { return 0 }
      let waits = item.members.map { items[$0] }.filter { !$0.operation.isFinished }.map { ranks[$0.index] }
      if item.isRunning { return item.kind == .group ? waits.max() ?? 8 : 3 }
      return max(waits.max() ?? 0, ranks[count + item.index])
    }
    var last: [Int] = []
    while ranks != last {
      last = ranks
      for item in items {
        let (beginning, end) = (item.isWaiting ? beginningRank(item) : 0, endRank(item))
        (ranks[count + item.index], ranks[item.index]) = (beginning, end)
      }
    }
    return ranks
  }
}
