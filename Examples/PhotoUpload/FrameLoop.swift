/// Draws frame after frame on the main thread, as an app does, and records how that went.
@MainActor
final class FrameLoop {
  private let display: Display
  private let start = ContinuousClock.now
  private(set) var frames: [Frame] = []

  init(on display: Display) { self.display = display }

  /// When the next frame begins, since the beginning of the recording.
  var next: Duration { frames.last?.end ?? .zero }

  /// Draws one, with work that comes before.
  func draw(_ work: () -> Void = {}) async {
    let (next, due) = (next, start + next)
    await display.refresh(at: due)
    let (began, processor) = (ContinuousClock.now, Processor.time)
    work()
    Processor.work(for: Budget.drawing)
    let (used, ended) = (Processor.time - processor, ContinuousClock.now)
    frames.append(Frame(start: next, duration: ended - due, stolen: max(.zero, ended - began - used)))
  }

  func draw(frames count: Int) async { for _ in 0..<count { await draw() } }
}
