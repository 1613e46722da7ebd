import Foundation

/// A screen that asks for frames, as long as the program runs.
@MainActor
final class Display {
  private let timer: any DispatchSourceTimer
  private var waiter: CheckedContinuation<Void, Never>?

  init() {
    timer = DispatchSource.makeTimerSource(flags: .strict, queue: .main)
    timer.setEventHandler { [unowned self] in refresh() }
    timer.activate()
  }

  /// Leaves the main thread to others until then.
  func refresh(at time: ContinuousClock.Instant) async {
    await withCheckedContinuation { continuation in
      waiter = continuation
      let nanoseconds = (time - .now) / .nanoseconds(1)
      timer.schedule(deadline: .now() + .nanoseconds(Int(nanoseconds)), leeway: .nanoseconds(0))
    }
  }

  private func refresh() {
    waiter?.resume()
    waiter = nil
  }
}
