/// Something that is done to the operations from outside, at a tick of the clock.
struct SoakAction: Sendable {
  enum Deed: Sendable {
    /// From several threads at once.
    case cancel(Int, threads: Int)
    /// Whatever it is doing, also before its start.
    case finish(Int)
    case resume(Int)
    /// A group stays open no longer.
    case close(Int)
    case limit(Int, Int)
    case takeGhostBack(Int)
    case rename(Int)
    /// While all of it is going on.
    case lookAtEverything
  }

  let tick: Int
  let deed: Deed
}
