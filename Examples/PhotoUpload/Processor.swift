import Foundation

/// Work, as the processor knows it: so much of its time, whoever else wants it meanwhile.
enum Processor {
  /// How much of the processor the current thread has had.
  static var time: Duration {
    var time = timespec()
    unsafe clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
  }

  /// Takes time as a computation does, and not as a pause.
  static func work(for duration: Duration) {
    let end = time + duration
    var number: UInt64 = 1
    // The number is looked at, for the compiler leaves out what nobody wants to know.
    while time < end || number == 0 {
      for _ in 0..<4000 { number = number &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407 }
    }
  }
}
