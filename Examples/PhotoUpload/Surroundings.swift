/// What the machine has to do with the figures.
struct Surroundings: Sendable {
  let processors: Int
  /// With nothing but drawing, before and after the rest.
  let baselines: [FrameStatistics]
  /// While the scheduler was at work.
  let scheduled: FrameStatistics

  var remarks: [String] {
    var remarks: [String] = []
    if processors == 1 {
      remarks.append("There is one processor: what the scheduler's thread has of it, the main thread has not.")
    }
    let missed = baselines.reduce(0) { $0 + $1.missed }
    if missed > 0 {
      let frames = baselines.reduce(0) { $0 + $1.frames }
      remarks.append("The machine is busy: while \(frames) frames were drawn without photos, \(missed) were missed.")
    }
    let stolen = baselines.map(\.stolen).max() ?? .zero
    if scheduled.stolen > stolen + .microseconds(500) {
      remarks.append(
        "Beside the scheduler a frame waited \(scheduled.stolen.milliseconds) for a processor, without it "
          + "\(stolen.milliseconds): it had none to itself."
      )
    }
    return remarks
  }
}
