/// The frames drawn during an upload.
struct Recording: Sendable {
  /// The number of frames drawn before and after the upload, for comparison.
  private static let margin = 10

  let title: String
  let frames: [Frame]
  /// The time on the display until a frame showed that all photos are prepared.
  let time: Duration

  /// The length of the recording.
  var length: Duration { frames.last?.end ?? .zero }

  @MainActor
  init(of upload: some Upload, on display: Display) async {
    let loop = FrameLoop(on: display)
    await loop.draw(frames: Recording.margin)
    let start = loop.nextStart
    repeat {
      let elapsed = loop.nextStart - start
      await loop.draw { upload.work(at: elapsed) }
    } while !upload.isDone
    title = upload.title
    time = (loop.frames.last.map { $0.start + $0.cost } ?? start) - start
    await loop.draw(frames: Recording.margin)
    frames = loop.frames
  }

  var summary: [(label: String, value: String)] {
    [
      ("frames missed", "\(frames.reduce(0) { $0 + $1.missed })"),
      ("worst frame", (frames.map(\.cost).max() ?? .zero).milliseconds),
      ("time to finish", time.seconds),
    ]
  }
}

/// The cost of frames over time, in columns of equal width. A column has the cost of its most expensive frame.
struct Timeline {
  /// The top of a chart. Higher costs are cut off.
  static let ceiling = Budget.frame * 3

  /// The costs, or zero where there is no frame.
  let columns: [Duration]

  init(of frames: [Frame], over length: Duration, columns count: Int) {
    var columns = Array(repeating: Duration.zero, count: count)
    let width = length / count
    for frame in frames {
      let first = min(max(0, Int(frame.start / width)), count - 1)
      let last = min(max(first + 1, Int(frame.end / width)), count)
      for column in first..<last { columns[column] = max(columns[column], frame.cost) }
    }
    self.columns = columns
  }
}
