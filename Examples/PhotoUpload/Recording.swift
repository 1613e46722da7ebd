/// What was seen of an upload.
struct Recording: Sendable {
  /// So many frames are drawn before and after, to compare with.
  private static let margin = 10

  let title: String
  let frames: [Frame]
  /// How long it took until the screen showed that all photos are ready.
  let time: Duration

  var statistics: FrameStatistics { FrameStatistics(of: frames) }
  /// How long it was recorded.
  var length: Duration { frames.last?.end ?? .zero }

  @MainActor
  init(of upload: some Upload, on display: Display) async {
    let loop = FrameLoop(on: display)
    await loop.draw(frames: Recording.margin)
    let start = loop.next
    repeat {
      let elapsed = loop.next - start
      await loop.draw { upload.work(at: elapsed) }
    } while !upload.isDone
    title = upload.title
    time = (loop.frames.last.map { $0.start + $0.duration } ?? start) - start
    await loop.draw(frames: Recording.margin)
    frames = loop.frames
  }

  var summary: [(label: String, value: String)] {
    let statistics = statistics
    return [
      ("frames missed", "\(statistics.missed)"),
      ("worst frame", statistics.worst.milliseconds),
      ("time to finish", time.seconds),
    ]
  }
}
