import Foundation
import OperationsTestSupport
import Soak
import Testing

@testable import Operations

/// Reports of random operations, some of which can never run, compared with a simple model. A tracer is attached.
///
/// `RANDOM_GRAPH_SEED=17 swift test --filter RandomDiagnostics` replays a world.
@Suite(.timeLimit(.minutes(5)))
struct RandomDiagnosticsTests {
  @Test(arguments: SeededGenerator.seeds) func blockedOperations_areReportedWithTheirCauses(seed: UInt64) async throws {
    var world: DiagnosticsWorld? = DiagnosticsWorld(seed: seed)
    let live = world!.live
    try await round(world!, seed)
    world = nil
    await live.none()
  }

  private func round(_ world: DiagnosticsWorld, _ seed: UInt64) async throws {
    let (stop, complaints) = (Gate(), Journal<String>())
    let (queues, tracer, otherTracer) = (world.queues, world.tracer, world.otherTracer)
    let (groups, all) = (world.items.compactMap(\.group), world.items.map(\.operation))
    let limits = queues.map(\.maxConcurrentOperationCount) + groups.map(\.maxConcurrentOperationCount)
    let mayCycle = !world.ring.isEmpty || limits.contains { $0 >= 0 }
    let own = Set(world.items.filter { $0.own != nil }.map(\.name))
    let asker = Task.detached {
      var turn = 0
      while !stop.isOpen {
        turn += 1
        for entry in queues[turn % queues.count].stallReport(alsoIn: queues).entries {
          // Foundation's books are settled a moment late for plain operations, which cannot be observed.
          let isUnready = entry.cause == .notReady && entry.root == nil && own.contains(entry.operation)
          if isUnready || (entry.cause == .cycle && !mayCycle) { complaints.write("\(entry.cause): \(entry)") }
        }
        _ = OperationGraph(all).mermaid().count + OperationGraph(Array(all.shuffled().prefix(3))).dot().count
        _ = tracer.chromeTrace().count + tracer.timeline().count + tracer.summary.operations
        if let group = groups.randomElement() {
          _ = group.stallReport().description
          otherTracer.trace(group)
        }
        await Task.yield()
      }
    }
    world.add()
    world.cancelSome()
    await rest(world, seed)
    try checkReports(world, seed)
    world.supply()
    for item in world.items { await item.operation.finished() }
    stop.open()
    await asker.value
    for complaint in Set(complaints.entries) { Issue.record("seed \(seed), while it moves: \(complaint)") }
    checkEnd(world, seed)
    try checkTrace(world, seed)
  }

  /// Waits until nothing proceeds.
  private func rest(_ world: DiagnosticsWorld, _ seed: UInt64) async {
    let deadline = ContinuousClock.now + .seconds(60)
    while ContinuousClock.now < deadline {
      // Each is checked at another moment, so nothing may have changed between the first and the last.
      let before = world.steps
      if world.moving == nil, world.steps == before { return }
      await Task.yield()
    }
    if let item = world.moving { Issue.record("seed \(seed): \(item.index) \(item.kind) does not proceed") }
  }

  // MARK: The reports

  private func checkReports(_ world: DiagnosticsWorld, _ seed: UInt64) throws {
    let (low, high) = (world.ranks(optimistic: true), world.ranks(optimistic: false))
    for (number, queue) in world.queues.enumerated() {
      let report = queue.stallReport(alsoIn: world.queues)
      let entries = Dictionary(grouping: report.entries, by: \.operation)
      for item in world.items {
        let found = entries[item.name] ?? []
        if found.isEmpty, item.operation.isFinished || world.outermostPlace(of: item) != .queue(number) { continue }
        let isExpected = found.count == 1 && !item.operation.isFinished
        #expect(isExpected, "seed \(seed): \(item.index) \(item.kind) has \(found)")
        guard isExpected, let entry = found.first else { continue }
        var points = [item.index]
        // If only its own members wait for the group's end, only its beginning is reported.
        if item.kind == .group, item.isWaiting { points.append(world.items.count + item.index) }
        let ranks = points.map { low[$0]...max(low[$0], high[$0]) }
        #expect(
          ranks.contains { causes($0).contains(entry.cause) },
          "seed \(seed): \(item.index) \(item.kind) at \(item.place), \(ranks): \(entry)\n\(report)"
        )
        if world.isKeptBack(item), item.isWaiting, world.unfinishedDependencies(item).isEmpty {
          #expect(entry.cause == .exclusivity, "seed \(seed): \(entry)")
        }
        let hasCycle = entry.description.contains("in a cycle") || entry.description.contains("back to")
        #expect(hasCycle == (entry.cause == .cycle), "seed \(seed): \(entry)")
        #expect(!entry.description.contains("“”") && !entry.description.contains("for ,"), "seed \(seed): \(entry)")
        #expect(Set(entry.waitsFor + [item.name]).count == entry.waitsFor.count + 1, "seed \(seed): \(entry.waitsFor)")
      }
      _ = try JSONEncoder().encode(report)
    }
  }

  /// The causes that may be reported for ranks in this range.
  private func causes(_ ranks: ClosedRange<Int>) -> Set<StallReport.Cause> {
    let causes: [Int: Set<StallReport.Cause>] = [
      10: [.cycle], 9: [.notEnqueued], 8: [.suspended], 6: [.notEnqueued],
      3: [.executing, .condition, .saturated, .exclusivity],
    ]
    return Set(ranks.flatMap { causes[$0] ?? [] })
  }

  // MARK: What has happened

  private func checkEnd(_ world: DiagnosticsWorld, _ seed: UInt64) {
    let executions = world.journal.entries
    let positions = Dictionary(grouping: executions.indices) { executions[$0] }
    for item in world.items where !item.operation.isCancelled {
      let found = positions[item.index] ?? []
      let times = "\(found.count) times: \(item.own?.errors ?? [])"
      #expect(found.count == 1, "seed \(seed): \(item.index) \(item.kind) has executed \(times)")
      for dependency in item.dependencies where world.ring.first != item.index {
        guard let before = positions[dependency]?.first, let position = found.first else { continue }
        #expect(before < position, "seed \(seed): \(item.index) before \(dependency)")
      }
    }
    for queue in world.queues { #expect(queue.stallReport().entries.allSatisfy { Int($0.operation) == nil }) }
  }

  private func checkTrace(_ world: DiagnosticsWorld, _ seed: UInt64) throws {
    let byName = Dictionary(grouping: world.tracer.records, by: \.name)
    for item in world.items where item.own != nil || item.isMember {
      let found = byName[item.name] ?? []
      #expect(found.count == 1, "seed \(seed): \(item.index) has \(found.count) records")
      guard let record = found.first else { continue }
      #expect(record.state == (item.operation.isCancelled ? .cancelled : .finished), "seed \(seed): \(record)")
      let finished = try #require(record.finished, "seed \(seed): no end: \(record)")
      if item.operation.isCancelled { continue }
      let started = try #require(record.started, "seed \(seed): executed without a beginning: \(record)")
      #expect(record.created <= started && started <= finished, "seed \(seed): \(record)")
      #expect(record.ready != nil || item.own == nil, "seed \(seed): never ready: \(record)")
      if let ready = record.ready { #expect(record.created <= ready && ready <= started, "seed \(seed): \(record)") }
      for dependency in item.dependencies where world.ring.first != item.index {
        guard world.items[dependency].own != nil, let other = byName["\(dependency)"]?.first else { continue }
        if let end = other.finished { #expect(end <= started, "seed \(seed): \(record) before \(other)") }
        let isKnown = item.own == nil || record.dependencies.contains(other.id)
        #expect(isKnown, "seed \(seed): \(item.index) has lost \(dependency)")
      }
    }
    for tracer in [world.tracer, world.otherTracer] {
      try expectNesting(tracer, "seed \(seed)")
      _ = tracer.timeline() + tracer.summary.description + tracer.graph.dot()
    }
  }
}
