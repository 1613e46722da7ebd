/// What one thread has still to do.
struct InterleavedActor<Step: Hashable & Sendable>: Hashable {
  /// The next one last.
  private(set) var steps: [Step]
  /// What the call that it is in has returned last.
  var answer = false
  /// It is in the middle of something that it is asked about.
  var isInside = false
  /// What other threads are to do from now on.
  private(set) var spawned: [[Step]] = []

  init(_ steps: [Step]) { self.steps = steps.reversed() }

  var next: Step? { steps.last }

  mutating func takeNext() -> Step? { steps.popLast() }

  /// These come before what it has to do anyway.
  mutating func go(on steps: Step...) { go(on: steps) }

  mutating func go(on steps: [Step]) { self.steps.append(contentsOf: steps.reversed()) }

  /// Another thread does this from now on.
  mutating func spawn(_ steps: [Step]) { spawned.append(steps) }

  mutating func takeSpawned() -> [InterleavedActor] {
    defer { spawned = [] }
    return spawned.map { InterleavedActor($0) }
  }
}
