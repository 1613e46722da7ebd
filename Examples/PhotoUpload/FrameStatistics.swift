/// What a number of frames amounts to.
struct FrameStatistics: Sendable {
  let frames: Int
  let missed: Int
  let worst: Duration
  /// How long a frame had to wait for a processor, on average.
  let stolen: Duration

  init(of frames: [Frame]) {
    self.frames = frames.count
    missed = frames.reduce(0) { $0 + $1.missed }
    worst = frames.map(\.duration).max() ?? .zero
    stolen = frames.reduce(.zero) { $0 + $1.stolen } / max(1, frames.count)
  }
}
