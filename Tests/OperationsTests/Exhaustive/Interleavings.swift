import Testing

/// A step that other actors see done or not done, never half: a critical section, or a single read or write.
protocol InterleavedStep: Hashable, Sendable {
  associatedtype World: InterleavedWorld

  /// Otherwise the actor waits for others.
  func isPossible(in world: World) -> Bool

  /// Performs the step, and gives the actor what it must do because of it.
  func perform(in world: inout World, by actor: inout InterleavedActor<Self>)
}

extension InterleavedStep {
  func isPossible(in world: World) -> Bool { true }
}

/// What actors share: the value under test, and what must be remembered to check its promises.
protocol InterleavedWorld {
  /// All that decides what can happen from here on, and whether it may: the value under test, and what has been done.
  var state: [AnyHashable] { get }

  /// The first promise that has been broken.
  var breach: String? { get set }

  /// A promise that is broken if nothing is left to do.
  var breachAtEnd: String? { get }

  /// Checks what must be true after every step.
  mutating func check()
}

extension InterleavedWorld {
  mutating func promise(_ isKept: Bool, _ breach: String) {
    if !isKept, self.breach == nil { self.breach = breach }
  }
}

/// What one thread still has to do.
struct InterleavedActor<Step: Hashable & Sendable>: Hashable {
  /// The next one last.
  private var steps: [Step]
  /// The last result of the call in progress.
  var answer = false
  /// Whether the actor is in the middle of a call whose callees check for it.
  var isInside = false
  /// The work of further threads from now on.
  fileprivate var spawned: [Self] = []

  init(_ steps: [Step]) { self.steps = steps.reversed() }

  var next: Step? { steps.last }

  mutating func takeNext() -> Step? { steps.popLast() }

  /// Inserts steps before the remaining ones.
  mutating func go(on steps: Step...) { go(on: steps) }

  mutating func go(on steps: [Step]) { self.steps += steps.reversed() }

  /// Gives steps to another thread.
  mutating func spawn(_ steps: [Step]) { spawned.append(Self(steps)) }
}

/// Every order in which several actors can take their steps, each state visited once.
///
/// A broken promise is reported with the schedule that led to it, to be replayed by hand.
struct Interleavings<Step: InterleavedStep> {
  typealias Actor = InterleavedActor<Step>

  private struct State: Hashable {
    let world: [AnyHashable]
    let actors: [Actor]
  }

  /// The number of schedules from each state.
  private var known: [State: Double] = [:]
  private var schedule: [(actor: Int, step: Step)] = []
  private var states = 0
  /// A floating-point number, because the number of orders exceeds the range of an integer.
  private var schedules = 0.0
  private var failure: String?

  /// Walks every order from one more beginning.
  mutating func walk(_ world: Step.World, _ actors: [[Step]]) {
    known = [:]
    schedules += ways(from: world, actors.map { Actor($0) })
    states += known.count
  }

  /// - Returns: The number of schedules from here on.
  private mutating func ways(from world: Step.World, _ actors: [Actor]) -> Double {
    if failure != nil { return 0 }
    let unfinished = actors.filter { $0.next != nil }
    let state = State(world: world.state, actors: unfinished)
    if let ways = known[state] { return ways }
    var ways = 0.0
    var isMoving = false
    for index in actors.indices {
      guard let step = actors[index].next, step.isPossible(in: world) else { continue }
      isMoving = true
      var (world, actors) = (world, actors)
      _ = actors[index].takeNext()
      step.perform(in: &world, by: &actors[index])
      world.check()
      let spawned = actors[index].spawned
      actors[index].spawned = []
      schedule.append((index, step))
      if let breach = world.breach { fail(breach) }
      ways += self.ways(from: world, actors + spawned)
      schedule.removeLast()
    }
    if !isMoving {
      ways = 1
      if let breach = unfinished.isEmpty ? world.breachAtEnd : "an actor waits for ever" { fail(breach) }
    }
    known[state] = ways
    return ways
  }

  private mutating func fail(_ breach: String) {
    if failure != nil { return }
    failure = "\(breach), after\n" + schedule.map { "  \($0.actor): \($0.step)" }.joined(separator: "\n")
  }

  /// Expects that all promises were kept, in so many states at least, because an empty walk would also keep them.
  func expectSuccess(states: Int, schedules: Double, sourceLocation: SourceLocation = #_sourceLocation) {
    if let failure {
      Issue.record("\(failure)", sourceLocation: sourceLocation)
    } else {
      #expect(
        self.states >= states && self.schedules >= schedules,
        "only \(self.states) states, \(self.schedules) schedules",
        sourceLocation: sourceLocation
      )
    }
  }
}
