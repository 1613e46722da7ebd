import Foundation
import Testing

/// Every order in which several actors can take their steps, each state visited once.
///
/// A promise that is broken is reported with the schedule that led there, to be replayed by hand.
struct Interleavings<Step: InterleavedStep> {
  typealias Actor = InterleavedActor<Step>

  private struct State: Hashable {
    let world: Step.World.Fingerprint
    /// Those who have something left to do.
    let actors: [Actor]
  }

  private var names: [String] = []
  /// In how many ways it can go on from each state.
  private var known: [State: Int] = [:]
  private var schedule: [(actor: Int, step: Step)] = []
  private(set) var states = 0
  private(set) var steps = 0
  /// How many orders there are. No more than this type holds.
  private(set) var schedules = 0
  private(set) var failure: String?

  /// Walks them all, from one more beginning.
  mutating func walk(_ world: Step.World, _ actors: KeyValuePairs<String, [Step]>) {
    walk(world, actors.map { ($0.key, $0.value) })
  }

  mutating func walk(_ world: Step.World, _ actors: [(name: String, steps: [Step])]) {
    names = actors.map(\.name)
    known = [:]
    schedule = []
    let ways = ways(from: world, actors.map { Actor($0.steps) })
    states += known.count
    schedules = schedules.addingOrMaximum(ways)
  }

  /// - Returns: In how many ways it can go on.
  private mutating func ways(from world: Step.World, _ actors: [Actor]) -> Int {
    if failure != nil { return 0 }
    let state = State(world: world.fingerprint, actors: actors.filter { $0.next != nil })
    if let ways = known[state] { return ways }
    var ways = 0
    var isMoving = false
    for index in actors.indices {
      guard let step = actors[index].next, step.isPossible(in: world) else { continue }
      isMoving = true
      steps += 1
      var (world, actors) = (world, actors)
      _ = actors[index].takeNext()
      step.perform(in: &world, by: &actors[index])
      if !actors[index].spawned.isEmpty { actors += actors[index].takeSpawned() }
      schedule.append((index, step))
      if let breach = world.breach { fail(breach) }
      ways = ways.addingOrMaximum(self.ways(from: world, actors))
      schedule.removeLast()
    }
    if !isMoving {
      ways = 1
      if let breach = world.breachAtEnd(waiting: actors.count { $0.next != nil }) { fail(breach) }
    }
    known[state] = ways
    return ways
  }

  private mutating func fail(_ breach: String) {
    if failure != nil { return }
    let lines = schedule.map { "  \(names.indices.contains($0.actor) ? names[$0.actor] : "another"): \($0.step)" }
    failure = "\(breach), after\n" + lines.joined(separator: "\n")
  }

  /// All promises were kept, in so many states at least: a walk that has become empty would keep them, too.
  func expectSuccess(states: Int, schedules: Int, sourceLocation: SourceLocation = #_sourceLocation) {
    if let failure { Issue.record("\(failure)", sourceLocation: sourceLocation) }
    if failure != nil { return }
    #expect(
      self.states >= states && self.schedules >= schedules,
      "only \(self.states) states, \(self.schedules) schedules",
      sourceLocation: sourceLocation
    )
  }
}

extension Int {
  fileprivate func addingOrMaximum(_ other: Int) -> Int {
    let (sum, overflows) = addingReportingOverflow(other)
    return overflows ? .max : sum
  }
}
