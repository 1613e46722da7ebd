import Foundation

/// The time available in a frame, and the work to do in it.
enum Budget {
  /// The time from one frame of the display to the next.
  static let frame = Duration.seconds(1) / 60
  static let drawing = Duration.milliseconds(10)
  /// The time to prepare a photo for its upload.
  static let photo = Duration.microseconds(2600)

  /// The number of photos that fit in a frame in addition to the drawing.
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
  func prepare(measuredBy clock: inout ProcessorClock) { clock.work(for: Budget.photo) }
}

/// Measures the processor time that a thread uses, which other programs on the machine do not change.
///
/// Every step between two readings is short. A long step is an interruption by the hypervisor of a virtual machine,
/// which the machine takes for processor time of the thread, or a change of the thread, because on Linux any thread may
/// run the main queue. So a step counts at most half a millisecond.
struct ProcessorClock {
  private static let longestStep = Duration.microseconds(500)

  @MainActor static var main = ProcessorClock()

  private var used = Duration.zero
  private var last = ProcessorClock.threadTime

  /// Returns the processor time since the clock was created.
  @discardableResult
  mutating func read() -> Duration {
    let now = ProcessorClock.threadTime
    used += min(max(now - last, .zero), ProcessorClock.longestStep)
    last = now
    return used
  }

  /// Computes until the thread has used this much processor time.
  mutating func work(for duration: Duration) {
    let end = read() + duration
    var number: UInt64 = 1
    // The number is part of the condition so that the compiler keeps the computation.
    while read() < end || number == 0 {
      for _ in 0..<500 { number = number &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407 }
    }
  }

  private static var threadTime: Duration {
    var time = timespec()
    unsafe clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
  }
}

extension Duration {
  /// The duration for people: “16.7 ms”.
  var milliseconds: String { "\(rounded(to: .milliseconds(1), parts: 10)) ms" }
  /// The duration for people: “2.61 s”.
  var seconds: String { "\(rounded(to: .seconds(1), parts: 100)) s" }

  private func rounded(to unit: Duration, parts: Double) -> Double { (self / unit * parts).rounded() / parts }
}
