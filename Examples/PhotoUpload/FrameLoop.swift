import Foundation

/// A frame that was drawn.
struct Frame: Sendable {
  /// When the display requested the frame, since the start of the recording.
  let start: Duration
  /// The processor time that the main thread used since the end of the previous frame.
  let cost: Duration

  var missed: Int { Budget.missed(at: cost) }
  /// When the display can request the next frame.
  var end: Duration { start + Budget.frame * (missed + 1) }
}

/// Draws frame after frame on the main thread, as an app does, and measures what they cost.
@MainActor
final class FrameLoop {
  private let display: Display
  private let origin = ContinuousClock.now
  private var lastTime = ProcessorClock.main.read()
  private(set) var frames: [Frame] = []

  init(on display: Display) { self.display = display }

  /// When the next frame starts, since the start of the recording. On a busy machine it is drawn later, as soon as
  /// possible.
  var nextStart: Duration { frames.last?.end ?? .zero }

  /// Draws a frame after some work.
  func draw(_ work: () -> Void = {}) async {
    let start = nextStart
    await display.nextFrame(at: origin + start)
    ProcessorClock.main.read()
    work()
    ProcessorClock.main.work(for: Budget.drawing)
    let time = ProcessorClock.main.read()
    frames.append(Frame(start: start, cost: time - lastTime))
    lastTime = time
  }

  func draw(frames count: Int) async { for _ in 0..<count { await draw() } }
}

/// A display that requests frames.
@MainActor
final class Display {
  private let timer: any DispatchSourceTimer
  private var waiter: CheckedContinuation<Void, Never>?

  init() {
    timer = DispatchSource.makeTimerSource(flags: .strict, queue: .main)
    timer.setEventHandler { [unowned self] in requestFrame() }
    timer.activate()
  }

  /// Suspends until the display requests a frame. The main thread can do other work meanwhile.
  func nextFrame(at time: ContinuousClock.Instant) async {
    await withCheckedContinuation { continuation in
      waiter = continuation
      let nanoseconds = (time - .now) / .nanoseconds(1)
      timer.schedule(deadline: .now() + .nanoseconds(Int(nanoseconds)), leeway: .nanoseconds(0))
    }
  }

  private func requestFrame() {
    waiter?.resume()
    waiter = nil
  }
}
