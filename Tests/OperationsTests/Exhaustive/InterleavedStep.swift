/// Something an actor does that others see done or not done, never half: a critical section, or a single read or write.
protocol InterleavedStep: Hashable, Sendable {
  associatedtype World: InterleavedWorld

  /// Otherwise the actor waits for others.
  func isPossible(in world: World) -> Bool

  /// Does it. What the actor has to do because of it is given to the actor.
  func perform(in world: inout World, by actor: inout InterleavedActor<Self>)
}

extension InterleavedStep {
  func isPossible(in world: World) -> Bool { true }
}
