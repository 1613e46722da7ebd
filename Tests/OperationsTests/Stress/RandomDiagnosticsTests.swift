import Foundation
import OperationsTestSupport
import Soak
import Testing

@testable import Operations

/// Random worlds in which some can never run, compared with a simple model of who can; traced all the while.
///
/// `RANDOM_GRAPH_SEED=17 swift test --filter RandomDiagnostics` replays a world, `RANDOM_DIAGNOSTICS_SEEDS=100..<200`
/// runs others.
@Suite(.timeLimit(.minutes(5)))
struct RandomDiagnosticsTests {
  private enum Kind { case instant, held, plain, condition, retry, group }

  private enum Place: Equatable {
    case queue(Int)
    case group(Int)
    case missing
  }

  private final class Item {
    let index: Int
    let kind: Kind
    let operation: Operation
    var place: Place
    var dependencies: [Int] = []
    var keys: [ExclusivityKey] = []
    var members: [Int] = []
    /// Of what executes until it is told, or is evaluated.
    let gate: Gate
    let begun: Gate

    init(_ index: Int, _ kind: Kind, _ place: Place, _ operation: Operation, _ gate: Gate, _ begun: Gate) {
      (self.index, self.kind, self.place, self.operation) = (index, kind, place, operation)
      (self.gate, self.begun) = (gate, begun)
    }

    var own: AsyncOperation? { operation as? AsyncOperation }
    var group: GroupOperation? { operation as? GroupOperation }
    /// It has a slot.
    var isRunning: Bool {
      if operation.isFinished { return false }
      return operation.isExecuting || (kind == .condition && begun.isOpen)
    }
    var isWaiting: Bool { !operation.isFinished && !isRunning }
    var name: String { "\(index)" }
  }

  private enum Step: Equatable { case executed(Int) }

  private final class World {
    var generator: SeededGenerator
    var items: [Item] = []
    var queues: [OperationQueue] = []
    let journal = Journal<Step>()
    let domain = ExclusivityDomain()
    let live = LiveCount()
    var ring: [Int] = []
    let tracer = OperationTracer()
    let otherTracer = OperationTracer()

    init(seed: UInt64) {
      generator = SeededGenerator(seed: seed)
      for index in 0..<4 {
        let queue = OperationQueue()
        queue.name = "queue \(index)"
        if index == 1 { queue.maxConcurrentOperationCount = 1 }
        if index == 2 { queue.maxConcurrentOperationCount = Int.random(in: 2...3, using: &generator) }
        if index == 3 || one(of: 8) { queue.isSuspended = one(of: 2) }
        queues.append(queue)
      }
      for _ in 0..<Int.random(in: 6...45, using: &generator) { addItem() }
      if one(of: 3) { closeRing() }
    }

    func one(of count: Int) -> Bool { Int.random(in: 0..<count, using: &generator) == 0 }

    private func addItem() {
      let index = items.count
      let (journal, gate, begun, token) = (journal, Gate(), Gate(), LiveCount.Token(live))
      let groups = items.filter { $0.kind == .group }.map(\.index)
      var place = Place.queue(Int.random(in: 0..<queues.count, using: &generator))
      if let group = groups.randomElement(using: &generator), one(of: 2) {
        place = .group(group)
      } else if one(of: 9) {
        place = .missing
      }
      let kinds: [Kind] = [.instant, .instant, .instant, .held, .plain, .condition, .retry, .group, .group]
      let kind = kinds.randomElement(using: &generator)!
      let operation: Operation
      switch kind {
      case .instant:
        operation = AsyncBlockOperation { operation in
          journal.write(.executed(index))
          withExtendedLifetime(token) { operation.finish() }
        }
      case .held:
        operation = AsyncBlockOperation { operation in
          journal.write(.executed(index))
          begun.open()
          gate.whenOpen { withExtendedLifetime(token) { operation.finish() } }
        }
      case .plain:
        operation = BlockOperation { withExtendedLifetime(token) { journal.write(.executed(index)) } }
      case .condition:
        let own = AsyncBlockOperation { operation in
          journal.write(.executed(index))
          withExtendedLifetime(token) { operation.finish() }
        }
        own.addCondition(
          OperationCondition(name: "gate") { _ in
            begun.open()
            await gate.opened()
          }
        )
        operation = own
      case .retry:
        operation = RetryOperation<Int>(attempts: 2) { _ in
          let inner = HeldResult(begun, gate) { journal.write(.executed(index)) }
          inner.name = "attempt of \(index)"
          return withExtendedLifetime(token) { inner }
        }
      case .group:
        let group = CountedGroup(live, [])
        if one(of: 5) { group.isSuspended = true }
        if one(of: 4) { group.maxConcurrentOperationCount = Int.random(in: 1...2, using: &generator) }
        operation = group
      }
      let item = Item(index, kind, place, operation.named("\(index)"), gate, begun)
      items.append(item)
      if let own = item.own {
        own.addObserver(
          OperationObserver(didStart: { _ in if kind == .group { journal.write(.executed(index)) } })
        )
      }
      if case .group(let group) = place { items[group].members.append(index) }
      if kind != .group, kind != .plain, place == .queue(0), one(of: 2) {
        item.keys = one(of: 3) ? ["a", "b"] : one(of: 2) ? ["a"] : ["b"]
      }
      for _ in 0..<Int.random(in: 0...2, using: &generator) where index > 0 {
        let other = Int.random(in: 0..<index, using: &generator)
        if item.dependencies.contains(other) || contains(other, index) { continue }
        item.dependencies.append(other)
        if hasFixedCycle { item.dependencies.removeLast() } else { operation.waits(for: items[other].operation) }
      }
    }

    private func contains(_ group: Int, _ item: Int) -> Bool {
      var place = items[item].place
      while case .group(let outer) = place {
        if outer == group { return true }
        place = items[outer].place
      }
      return false
    }

    /// Whether ends, members and beginnings wait for each other, whoever has slots.
    private var hasFixedCycle: Bool {
      var waits: [[Int]] = items.map { $0.members }
      waits += items.map { _ in [] }
      for item in items {
        let beginning = items.count + item.index
        waits[item.index].append(beginning)
        waits[beginning] += item.dependencies
        if case .group(let group) = item.place { waits[beginning].append(items.count + group) }
      }
      return WaitOrder(waits).order.count < waits.count
    }

    /// Three operations that wait for each other, and some that wait for them.
    private func closeRing() {
      let (journal, first) = (journal, items.count)
      for index in first..<(first + 4) {
        let token = LiveCount.Token(live)
        let operation = AsyncBlockOperation { operation in
          journal.write(.executed(index))
          withExtendedLifetime(token) { operation.finish() }
        }
        items.append(Item(index, .instant, .queue(0), operation.named("\(index)"), Gate(), Gate()))
      }
      for (one, other) in [(first, first + 1), (first + 1, first + 2), (first + 2, first), (first + 3, first)] {
        items[one].operation.waits(for: items[other].operation)
        items[one].dependencies.append(other)
      }
      ring = [first, first + 1, first + 2]
    }

    func add() {
      for item in items { if case .group(let group) = item.place { items[group].group!.addOperation(item.operation) } }
      tracer.trace(items.compactMap { item in if case .group = item.place { nil } else { item.own } })
      for item in items.shuffled(using: &generator) {
        if item.kind == .group, one(of: 2) { otherTracer.trace(item.own!) }
        guard case .queue(let number) = item.place else { continue }
        if !item.keys.isEmpty {
          if let own = item.own { queues[number].addOperation(own.exclusive(item.keys, in: domain)) }
        } else if let own = item.own, !one(of: 4) {
          queues[number].addOperation(own)
        } else {
          queues[number].addOperation(item.operation)
        }
      }
    }

    func cancelSome() {
      for item in items where item.kind != .group && item.kind != .retry && one(of: 12) {
        guard let own = item.own, item.isWaiting, !item.operation.isExecuting, !ring.contains(item.index) else {
          continue
        }
        if item.keys.isEmpty, item.kind == .instant { own.cancel() }
      }
    }

    // MARK: The model

    func place(_ place: Place) -> (limit: Int, isSuspended: Bool, members: [Item]) {
      let members = items.filter { $0.place == place }
      switch place {
      case .queue(let queue): return (queues[queue].maxConcurrentOperationCount, queues[queue].isSuspended, members)
      case .group(let group):
        return (items[group].group!.maxConcurrentOperationCount, items[group].group!.isSuspended, members)
      case .missing: return (-1, true, [])
      }
    }

    func unfinishedDependencies(_ item: Item) -> [Item] {
      if item.operation.isCancelled { return [] }
      return item.dependencies.filter { !(ring.first == item.index && isRingOpen && $0 == ring[1]) }.map { items[$0] }
        .filter { !$0.operation.isFinished }
    }

    func outermostPlace(of item: Item) -> Place {
      var place = item.place
      while case .group(let group) = place { place = items[group].place }
      return place
    }

    var isRingOpen = false

    func hasBegun(_ place: Place) -> Bool {
      if case .group(let group) = place { return items[group].operation.isExecuting }
      return true
    }

    private var asking: [Item] {
      items.filter { !$0.keys.isEmpty && $0.isWaiting && unfinishedDependencies($0).isEmpty }
    }

    /// Those with whom it shares a key, or who share one with those.
    func isKeptBack(_ item: Item) -> Bool {
      if item.keys.isEmpty || item.operation.isCancelled { return false }
      var (reached, toDo) = (Set([item.index]), [item])
      while let next = toDo.popLast() {
        for other in items where !other.keys.isEmpty && !Set(other.keys).isDisjoint(with: next.keys) {
          if other.isRunning { return true }
          if asking.contains(where: { $0 === other }), reached.insert(other.index).inserted { toDo.append(other) }
        }
      }
      return false
    }

    var stations: [Int] { items.map { $0.operation.isFinished ? 2 : $0.isRunning ? 1 : 0 } }

    /// Who is just about to get on.
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

    /// The worst and the best that can be said of the end of each, and then of each one's beginning: how little hope
    /// there is.
    func ranks(optimistic: Bool) -> [Int] {
      let count = items.count
      // Ends, and then beginnings.
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
        if case .group(let group) = item.place, !hasBegun(item.place) { waits.append(ranks[count + group]) }
        if !waits.isEmpty { return waits.max()! }
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
        var waits = item.members.map { items[$0] }.filter { !$0.operation.isFinished }.map { ranks[$0.index] }
        if item.isRunning {
          if item.kind != .group { return 3 }
          return waits.max() ?? 8
        }
        waits.append(ranks[count + item.index])
        return waits.max()!
      }
      while true {
        var changed = false
        for item in items {
          for (point, rank) in [
            (count + item.index, item.isWaiting ? beginningRank(item) : 0), (item.index, endRank(item)),
          ]
          where ranks[point] != rank {
            ranks[point] = rank
            changed = true
          }
        }
        if !changed { return ranks }
      }
    }

    // MARK: The end

    func supply() {
      for item in items {
        if case .missing = item.place {
          item.place = .queue(0)
          queues[0].addOperation(item.operation)
        }
        item.gate.open()
        item.group?.isSuspended = false
        item.group?.maxConcurrentOperationCount = -1
      }
      if ring.count > 1 {
        isRingOpen = true
        items[ring[0]].operation.removeDependency(items[ring[1]].operation)
      }
      for queue in queues {
        queue.maxConcurrentOperationCount = -1
        queue.isSuspended = false
      }
    }
  }

  private final class HeldResult: ResultOperation<Int>, @unchecked Sendable {
    let (begun, gate, body): (Gate, Gate, @Sendable () -> Void)

    init(_ begun: Gate, _ gate: Gate, _ body: @escaping @Sendable () -> Void) {
      (self.begun, self.gate, self.body) = (begun, gate, body)
      super.init()
    }

    override func execute() {
      body()
      begun.open()
      gate.whenOpen { self.finish(returning: 1) }
    }
  }

  static var seeds: [UInt64] {
    let range = ProcessInfo.processInfo.environment["RANDOM_DIAGNOSTICS_SEEDS"]?.split(separator: "..<")
      .compactMap { UInt64($0) }
    if let range, range.count == 2 { return Array(range[0]..<range[1]) }
    return SeededGenerator.seeds
  }

  @Test(arguments: seeds) func whoIsBlockedForEverIsSaidWhy(seed: UInt64) async throws {
    var world: World? = World(seed: seed)
    let live = world!.live
    try await round(world!, seed)
    world = nil
    await live.none()
  }

  private func round(_ world: World, _ seed: UInt64) async throws {
    let stop = Locked(false)
    let complaints = Journal<String>()
    let (queues, tracer, otherTracer) = (world.queues, world.tracer, world.otherTracer)
    let groups = world.items.compactMap(\.group)
    let all = world.items.map(\.operation)
    let mayCycle =
      !world.ring.isEmpty || queues.contains { $0.maxConcurrentOperationCount >= 0 }
      || groups.contains { $0.maxConcurrentOperationCount >= 0 }
    let own = Set(world.items.filter { $0.own != nil }.map(\.name))
    let asker = Task.detached {
      var turn = 0
      while !stop.withLock({ $0 }) {
        turn += 1
        let report = queues[turn % queues.count].stallReport(alsoIn: queues)
        for entry in report.entries {
          if entry.cause == .cycle, !mayCycle { complaints.write("cycle: \(entry)") }
          // Foundation's books are settled a moment late for plain ones, which nobody can see.
          if entry.cause == .notReady, entry.root == nil, own.contains(entry.operation) {
            complaints.write("notReady: \(entry)")
          }
        }
        if let group = groups.randomElement() { _ = group.stallReport().description }
        _ = OperationGraph(all).mermaid().count + OperationGraph(Array(all.shuffled().prefix(3))).dot().count
        _ = tracer.chromeTrace().count + tracer.timeline().count + tracer.summary.operations
        if let group = groups.randomElement() { otherTracer.trace(group) }
        await Task.yield()
      }
    }
    world.add()
    world.cancelSome()
    await rest(world, seed)
    try check(world, seed)
    world.supply()
    for item in world.items { await item.operation.finished() }
    stop.withLock { $0 = true }
    await asker.value
    for complaint in Set(complaints.entries) { Issue.record("seed \(seed), while it moves: \(complaint)") }
    checkEnd(world, seed)
    try checkTrace(world, seed)
  }

  /// Until nothing moves.
  private func rest(_ world: World, _ seed: UInt64) async {
    let deadline = ContinuousClock.now + .seconds(60)
    while true {
      // Each is looked at at another moment: nobody may have moved between the first and the last.
      let before = world.stations
      let item = world.moving
      if item == nil, world.stations == before { return }
      if ContinuousClock.now > deadline {
        if let item { Issue.record("seed \(seed): \(item.index) \(item.kind) at \(item.place) does not get on") }
        return
      }
      await Task.yield()
    }
  }

  private func check(_ world: World, _ seed: UInt64) throws {
    let (low, high) = (world.ranks(optimistic: true), world.ranks(optimistic: false))
    for (number, queue) in world.queues.enumerated() {
      let report = queue.stallReport(alsoIn: world.queues)
      let entries = Dictionary(grouping: report.entries, by: \.operation)
      for item in world.items {
        let found = entries[item.name] ?? []
        if item.operation.isFinished {
          #expect(found.isEmpty, "seed \(seed): \(item.index) has finished, but: \(found)")
          continue
        }
        if world.outermostPlace(of: item) != .queue(number), found.isEmpty { continue }
        #expect(found.count == 1, "seed \(seed): \(item.index) \(item.kind) has \(found.count) entries")
        guard let entry = found.first else { continue }
        var causes = Self.causes(low[item.index]...max(low[item.index], high[item.index]))
        if item.kind == .group, item.isWaiting {
          // Where nobody waits for the group's end but its own members, only its beginning is spoken of.
          let beginning = world.items.count + item.index
          causes.formUnion(Self.causes(low[beginning]...max(low[beginning], high[beginning])))
        }
        #expect(
          causes.contains(entry.cause),
          "seed \(seed): \(item.index) \(item.kind) at \(item.place), \(low[item.index])...\(high[item.index]): \(entry)\n\(report)"
        )
        if world.isKeptBack(item), item.isWaiting, world.unfinishedDependencies(item).isEmpty {
          #expect(entry.cause == .exclusivity, "seed \(seed): \(entry)")
        }
        let hasCycle = entry.description.contains("in a cycle") || entry.description.contains("back to")
        #expect(hasCycle == (entry.cause == .cycle), "seed \(seed): \(entry)")
        #expect(!entry.description.contains("“”") && !entry.description.contains("for ,"), "seed \(seed): \(entry)")
      }
      _ = try JSONEncoder().encode(report)
    }
  }

  private static func causes(_ ranks: ClosedRange<Int>) -> Set<StallReport.Cause> {
    var causes: Set<StallReport.Cause> = []
    for rank in ranks {
      switch rank {
      case 10: causes.insert(.cycle)
      case 9, 6: causes.insert(.notEnqueued)
      case 8: causes.insert(.suspended)
      case 3: causes.formUnion([.executing, .condition, .saturated, .exclusivity])
      default: continue
      }
    }
    return causes
  }

  private func checkEnd(_ world: World, _ seed: UInt64) {
    var executed: [Int: Int] = [:]
    for (position, step) in world.journal.entries.enumerated() {
      guard case .executed(let index) = step else { continue }
      if executed[index] != nil { Issue.record("seed \(seed): \(index) executed twice") }
      executed[index] = position
    }
    for item in world.items {
      if item.operation.isCancelled { continue }
      guard let position = executed[item.index] else {
        Issue.record("seed \(seed): \(item.index) \(item.kind) has not executed: \(item.own?.errors ?? [])")
        continue
      }
      for dependency in item.dependencies where world.ring.first != item.index {
        guard let before = executed[dependency] else { continue }
        #expect(before < position, "seed \(seed): \(item.index) before \(dependency)")
      }
    }
    for queue in world.queues { #expect(queue.stallReport().entries.allSatisfy { Int($0.operation) == nil }) }
  }

  private func checkTrace(_ world: World, _ seed: UInt64) throws {
    let records = world.tracer.records
    let byName = Dictionary(grouping: records, by: \.name)
    for item in world.items where item.own != nil || item.place != .missing {
      guard item.own != nil || { if case .group = item.place { true } else { false } }() else { continue }
      let found = byName[item.name] ?? []
      #expect(found.count == 1, "seed \(seed): \(item.index) has \(found.count) records")
      guard let record = found.first else { continue }
      let state: OperationGraph.Node.State = item.operation.isCancelled ? .cancelled : .finished
      #expect(record.state == state, "seed \(seed): \(record)")
      guard let finished = record.finished else {
        Issue.record("seed \(seed): no end: \(record)")
        continue
      }
      if item.operation.isCancelled { continue }
      guard let started = record.started else {
        Issue.record("seed \(seed): executed without a beginning: \(record)")
        continue
      }
      #expect(record.created <= started && started <= finished, "seed \(seed): \(record)")
      if let ready = record.ready {
        #expect(record.created <= ready && ready <= started, "seed \(seed): \(record)")
      } else if item.own != nil {
        Issue.record("seed \(seed): never ready: \(record)")
      }
      for dependency in item.dependencies where world.ring.first != item.index {
        guard world.items[dependency].own != nil, let other = byName["\(dependency)"]?.first else { continue }
        if let end = other.finished { #expect(end <= started, "seed \(seed): \(record) before \(other)") }
        if item.own != nil {
          #expect(record.dependencies.contains(other.id), "seed \(seed): \(item.index) has lost \(dependency)")
        }
      }
    }
    for (name, tracer) in [("all", world.tracer), ("some", world.otherTracer)] {
      try expectNesting(tracer, "seed \(seed)")
      if let folder = ProcessInfo.processInfo.environment["TRACE_FOLDER"] {
        try tracer.chromeTrace().write(to: URL(fileURLWithPath: "\(folder)/\(seed)-\(name).json"))
      }
      _ = tracer.timeline() + tracer.summary.description + tracer.graph.dot()
    }
  }
}
