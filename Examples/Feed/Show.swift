import Operations

/// A presenter and a view at work.
@MainActor
struct Show {
  private static let frame = Duration.milliseconds(8)
  /// About every other frame misses rows, if the presenter gets on. After so many in vain the report says that there
  /// were none.
  private static let mostExtraFrames = 10_000

  let presenter: any Presenter
  let view: any FeedView

  /// - Parameter isFaultWanted: Whether to draw more frames if no row was missing until then.
  /// - Returns: What came of it.
  func run(frames: Int, isFaultWanted: Bool) async -> Report {
    let coalescedBefore = SerialScheduler.main.statistics.eventsCoalesced
    let following = Task { [presenter] in await presenter.follow() }
    while isToGoOn(frames, isFaultWanted) {
      await Show.nextFrame()
      view.drawFrame()
    }
    following.cancel()
    await following.value
    // The last that the presenter had to say is on its way.
    await SerialScheduler.main.drained()
    view.drawFrame()
    return Report(
      updates: await presenter.updates,
      canvas: view.canvas,
      coalescedOnTheWay: SerialScheduler.main.statistics.eventsCoalesced - coalescedBefore,
      isFaultWanted: isFaultWanted
    )
  }

  /// One frame is left for the end.
  private func isToGoOn(_ frames: Int, _ isFaultWanted: Bool) -> Bool {
    let canvas = view.canvas
    if canvas.framesDrawn < frames - 1 { return true }
    return isFaultWanted && canvas.indexFaults == 0 && canvas.framesDrawn < frames + Show.mostExtraFrames
  }

  /// Stands for the display, which would say when it is time. What the presenter has to say comes in meanwhile.
  private static func nextFrame() async {
    await withCheckedContinuation { continuation in
      SerialScheduler.main.schedule(after: frame) { continuation.resume() }
    }
  }
}
