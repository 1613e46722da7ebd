import Foundation

/// The time available in a frame, and what has to be done in it.
enum Budget {
  /// The time from one frame of the display to the next.
  static let frame = Duration.seconds(1) / 60
  static let drawing = Duration.milliseconds(10)
  /// The time to prepare a photo for its upload.
  static let photo = Duration.microseconds(2600)

  /// The number of photos that fit in a frame beside the drawing.
  static let photosPerFrame = Int((frame - drawing) / photo)

  static func cost(photos: Int) -> Duration { drawing + photo * photos }

  /// Returns the number of frames that the display shows unchanged when a frame costs more than its time.
  static func missed(at cost: Duration) -> Int { max(0, Int((cost / frame).rounded(.up)) - 1) }

  static var summary: [String] {
    let (fitting, tooMany) = (photosPerFrame, photosPerFrame + 1)
    return [
      "A frame has \(frame.milliseconds), of which drawing takes \(drawing.milliseconds). "
        + "A photo takes \(photo.milliseconds):",
      "\(fitting) a frame fit (\(cost(photos: fitting).milliseconds)), "
        + "\(tooMany) do not (\(cost(photos: tooMany).milliseconds)).",
      "Measured: the main thread's processor time, from one frame's end to the next.",
    ]
  }
}

/// A photo to upload.
struct Photo: Sendable {
  let number: Int

  /// Takes as much processor time as reading, scaling and encoding a photo.
  func prepare() { Processor.work(for: Budget.photo) }
}

/// Processor time, which other programs on the machine do not change.
enum Processor {
  /// A step of work takes a few microseconds. The hypervisor of a virtual machine causes longer ones, because the
  /// clocks of the machine do not stop while it runs something else.
  private static let longestStep = Duration.microseconds(500)

  @MainActor private static var interruptions = Duration.zero

  /// The processor time that the main thread has used.
  @MainActor static var mainThreadTime: Duration { time - interruptions }

  /// The processor time that the current thread has used.
  private static var time: Duration {
    var time = timespec()
    unsafe clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
  }

  /// Computes until the current thread has used this much processor time.
  static func work(for duration: Duration) {
    var (last, rest) = (time, duration)
    var number: UInt64 = 1
    // The number is part of the condition so that the compiler keeps the computation.
    while rest > .zero || number == 0 {
      for _ in 0..<500 { number = number &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407 }
      let now = time
      let step = min(now - last, longestStep)
      let interruption = now - last - step
      if interruption > .zero, Thread.isMainThread { MainActor.assumeIsolated { interruptions += interruption } }
      (last, rest) = (now, rest - step)
    }
  }
}

extension Duration {
  /// The duration for people: “16.7 ms”.
  var milliseconds: String { "\(rounded(to: .milliseconds(1), parts: 10)) ms" }
  /// The duration for people: “2.61 s”.
  var seconds: String { "\(rounded(to: .seconds(1), parts: 100)) s" }

  private func rounded(to unit: Duration, parts: Double) -> Double { (self / unit * parts).rounded() / parts }
}
