import Foundation

/// Runs what timers have found due, in order.
///
/// The work may call anything, including code that blocks, and must neither wait for a thread of the shared pool nor
/// delay other timers. It runs on a serial Dispatch queue, which gets a thread at once. If the work that comes next has
/// not begun ``patience`` later, the thread is assumed to be blocked, and another queue takes over. So a burst of timers
/// takes one thread, and one that blocks delays the others by no more than that.
final class DueWork: TaskExecutor {
  static let shared = DueWork()
  private static let patience = DispatchTimeInterval.milliseconds(10)

  private struct State {
    var works = ArrayDeque<@Sendable () -> Void>()
    /// How many have begun, ever.
    var begun = 0
    /// How many queues are running works.
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

  /// A task that waits on a clock of the user's.
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

  /// Adds a runner if none has begun anything for a while though there is something to do.
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
