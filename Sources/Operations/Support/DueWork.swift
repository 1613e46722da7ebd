import Foundation

/// An executor that runs the work of due timers, in order.
///
/// The work can be any code, including code that blocks. It must neither wait for a thread of the shared pool nor
/// delay other timers. It runs on a serial Dispatch queue, which gets a thread at once. If the next work has not
/// begun ``patience`` later, the thread is assumed to be blocked, and another queue takes over. A burst of timers
/// therefore takes one thread, and work that blocks delays the other timers by no more than ``patience``.
final class DueWork: TaskExecutor {
  static let shared = DueWork()
  private static let patience = DispatchTimeInterval.milliseconds(10)

  private struct State {
    var works = ArrayDeque<@Sendable () -> Void>()
    /// The number of works that have begun in total.
    var begun = 0
    /// The number of queues that are running works.
    var runners = 0
    var isWatched = false
  }

  private let state = Locked(State())
  private let watch = DispatchQueue(label: "Operations.DueWork.watch", qos: .userInitiated)

  func add(_ works: [@Sendable () -> Void]) {
    if works.isEmpty { return }
    let (addsRunner, begun) = state.withLock { state -> (Bool, watchedSince: Int?) in
      for work in works { state.works.append(work) }
      let addsRunner = state.runners == 0
      if addsRunner { state.runners = 1 }
      defer { state.isWatched = true }
      return (addsRunner, state.isWatched ? nil : state.begun)
    }
    if addsRunner { run() }
    if let begun { check(since: begun) }
  }

  /// Adds a job of a task that waits on a custom clock.
  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    add([{ unsafe job.runSynchronously(on: self.asUnownedTaskExecutor()) }])
  }

  private func run() {
    DispatchQueue(label: "Operations.DueWork", qos: .userInitiated).async { [self] in
      while let work = next() { work() }
    }
  }

  private func next() -> (@Sendable () -> Void)? {
    state.withLock { state in
      let next = state.works.popFirst()
      if next == nil { state.runners -= 1 } else { state.begun += 1 }
      return next
    }
  }

  /// Adds a runner if no work has begun for a while although there is work.
  private func check(since begun: Int) {
    watch.asyncAfter(deadline: .now() + Self.patience) { [self] in
      let (addsRunner, begun) = state.withLock { state -> (Bool, watchedSince: Int?) in
        if state.works.isEmpty {
          state.isWatched = false
          return (false, nil)
        }
        let addsRunner = state.begun == begun
        if addsRunner { state.runners += 1 }
        return (addsRunner, state.begun)
      }
      if addsRunner { run() }
      if let begun { check(since: begun) }
    }
  }
}
