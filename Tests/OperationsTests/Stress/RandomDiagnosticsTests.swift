import Foundation
import OperationsTestSupport
import Soak
import Testing

@testable import Operations

/// Reports of random operations, some of which can never run, compared with a simple model. Meanwhile reports, drawings
/// and traces are read.
///
/// `RANDOM_GRAPH_SEED=17 swift test --filter RandomDiagnostics` replays a world.
@Suite(.timeLimit(.minutes(5)))
struct RandomDiagnosticsTests {
  private enum Place: Equatable {
    case queue(Int)
    case group(Int)
    case missing
  }

  private struct Item {
    let place: Place
    let operation: Operation
    var dependencies: [Int] = []
    var members: [Int] = []

    var group: GroupOperation? { operation as? GroupOperation }
    var outer: Int? { if case .group(let group) = place { group } else { nil } }
  }

  private struct World {
    let seed: UInt64
    private var generator: SeededGenerator
    private(set) var items: [Item] = []
    /// The second one is suspended.
    let queues = [OperationQueue.named("queue 0"), .named("queue 1")]
    /// The first of three operations that wait for each other.

    init(seed: UInt64) {
      (self.seed, generator) = (seed, SeededGenerator(seed: seed))
      queues[1].isSuspended = true
      for _ in 0..<generator.number(6...45) { addItem() }
      for item in items { item.outer.flatMap { items[$0].group }?.addOperation(item.operation) }
    }

    private mutating func addItem() {
      let groups = items.indices.filter { items[$0].group != nil }
      var place = generator.one(of: 9) ? Place.missing : .queue(generator.number(0...1))
      if let group = groups.randomElement(using: &generator), generator.one(of: 2) { place = .group(group) }
      let operation: Operation =
        switch generator.number(0...4) {
        case 0: GroupOperation()
        case 1: HeldOperation()
        // A plain operation that is nowhere may be in a queue that is not searched.
        case 2 where outermost(place) != .missing: BlockOperation {}
        default: AsyncOperation()
        }
      let index = add(operation, place)
      if generator.one(of: 5) { items[index].group?.isSuspended = true }
      let root = root(of: index)
      // Other operations may be members of a group that waits for this one.
      let earlier = items.indices.filter { $0 < root || ($0 < index && items[$0].place == place) }
      for other in earlier.shuffled(using: &generator).prefix(generator.number(0...2)) {
        wait(index, for: other)
      }
    }

    private mutating func add(_ operation: Operation, _ place: Place) -> Int {
      let index = items.count
      items.append(Item(place: place, operation: operation.named("\(index)")))
      if let outer = items[index].outer { items[outer].members.append(index) }
      return index
    }

    private mutating func wait(_ index: Int, for other: Int) {
      items[index].dependencies.append(other)
      items[index].operation.waits(for: items[other].operation)
    }

    /// The outermost group around an item, or the item itself.
    private func root(of index: Int) -> Int { items[index].outer.map { root(of: $0) } ?? index }

    /// The place of the outermost group around a place, or the place itself.
    func outermost(_ place: Place) -> Place {
      if case .group(let group) = place { outermost(items[group].place) } else { place }
    }

    mutating func enqueue() {
      for item in items.shuffled(using: &generator) {
        guard case .queue(let number) = item.place else { continue }
        if let own = item.operation as? AsyncOperation, !generator.one(of: 4) {
          queues[number].addOperation(own)
        } else {
          queues[number].addByFoundation(item.operation)
        }
      }
    }

    /// Gives every operation what it waits for.
    func supply() {
      for item in items {
        if item.place == .missing { queues[0].addByFoundation(item.operation) }
        (item.operation as? HeldOperation)?.gate.open()
        item.group?.isSuspended = false
      }
      queues[1].isSuspended = false
    }

    /// The ranks of the causes that keep each item from its start and from its end. 0 is no cause, and a wait for
    /// several others has the highest of their ranks.
    var ranks: [(start: Int, end: Int)] {
      var ranks = items.map { _ in (start: 10, end: 10) }
      // What is on no cycle gets its rank once what it waits for has its own.
      for _ in 0..<2 * items.count {
        for (index, item) in items.enumerated() {
          let waits = item.dependencies.map { ranks[$0].end } + (item.outer.map { [ranks[$0].start] } ?? [])
          let (before, members) = (waits.max() ?? 0, item.members.map { ranks[$0].end }.max())
          let start = before > 0 ? before : rank(of: item.place)
          ranks[index] = (start, max(start, members ?? (start > 0 ? 0 : rank(of: item))))
        }
      }
      return ranks
    }

    private func rank(of place: Place) -> Int {
      switch place {
      case .missing: 9
      case .queue(let number): queues[number].isSuspended ? 8 : 0
      case .group(let group): items[group].group?.isSuspended == true ? 8 : 0
      }
    }

    /// The rank of an executing item without members.
    private func rank(of item: Item) -> Int {
      item.operation is HeldOperation ? 3 : item.group?.isSuspended == true ? 8 : 0
    }
  }

  @Test(arguments: SeededGenerator.seeds) func blockedOperations_areReportedWithTheirCauses(seed: UInt64) async throws {
    var world = World(seed: seed)
    let (stop, queues) = (Gate(), world.queues)
    let reader = read(world, until: stop)
    world.enqueue()
    for (item, rank) in zip(world.items, world.ranks) where rank.start == 0 {
      if rank.end == 0 { await item.operation.finished() } else { await poll { item.operation.isExecuting } }
    }
    // Foundation notes a moment later that an operation has become ready.
    await poll {
      let entries = queues.flatMap { $0.stallReport(alsoIn: queues).entries }
      return entries.allSatisfy { $0.cause != .transitioning && $0.cause != .notReady }
    }
    for queue in queues { try check(queue.stallReport(alsoIn: queues), of: queue, in: world) }
    world.supply()
    for item in world.items { await item.operation.finished() }
    stop.open()
    for complaint in await reader.value { Issue.record("seed \(seed), while it moves: \(complaint)") }
    for queue in queues { #expect(queue.stallReport().entries.allSatisfy { Int($0.operation) == nil }) }
  }

  /// Reads reports, drawings and traces until the gate is opened.
  ///
  /// - Returns: The entries that must not be in a report.
  private func read(_ world: World, until stop: Gate) -> Task<Set<String>, Never> {
    let (queues, all, groups) = (world.queues, world.items.map(\.operation), world.items.compactMap(\.group))
    let own = Set(world.items.compactMap { ($0.operation as? AsyncOperation)?.name })
    let tracer = OperationTracer()
    return Task.detached {
      var complaints: Set<String> = []
      while !stop.isOpen {
        for entry in queues.flatMap({ $0.stallReport(alsoIn: queues).entries }) {
          // Foundation's books are settled a moment late for plain operations, which cannot be observed.
          let isUnready = entry.cause == .notReady && entry.root == nil && own.contains(entry.operation)
          if isUnready || entry.cause == .cycle { complaints.insert("\(entry.cause): \(entry)") }
        }
        _ = OperationGraph(all).mermaid().count + OperationGraph(Array(all.shuffled().prefix(3))).dot().count
        _ = tracer.chromeTrace().count + tracer.timeline().count + tracer.graph.dot().count
        if let group = groups.randomElement() {
          _ = group.stallReport().description
          tracer.trace(group)
        }
        await Task.yield()
      }
      return complaints
    }
  }

  private func check(_ report: StallReport, of queue: OperationQueue, in world: World) throws {
    let causes: [Int: StallReport.Cause] = [9: .notEnqueued, 8: .suspended, 3: .executing]
    let (entries, ranks) = (Dictionary(grouping: report.entries, by: \.operation), world.ranks)
    for (index, item) in world.items.enumerated() {
      let (found, rank) = (entries["\(index)"] ?? [], ranks[index])
      let words = "seed \(world.seed): \(index) at \(item.place), \(rank): \(found)"
      let isInQueue = world.queues.firstIndex(of: queue).map { world.outermost(item.place) == .queue($0) } ?? false
      if found.isEmpty, rank.end == 0 || !isInQueue { continue }
      #expect(found.count == 1 && rank.end > 0, "\(words)")
      guard let entry = found.first else { continue }
      // If only its own members wait for the end of a group, only its beginning is reported.
      let isExplained = causes[rank.end] == entry.cause || (item.group != nil && causes[rank.start] == entry.cause)
      #expect(isExplained, "\(words)\n\(report)")
      let hasCycle = entry.description.contains(/, in (a cycle|the cycle of “)/)
      #expect(hasCycle == (entry.cause == .cycle), "\(words)")
      #expect(!entry.description.contains("“”") && !entry.description.contains("for ,"), "\(words)")
      #expect(Set(entry.waitsFor + ["\(index)"]).count == entry.waitsFor.count + 1, "\(words)")
    }
    _ = try JSONEncoder().encode(report)
  }
}
