import Synchronization

/// How far a scheduler has come. Written by whoever is running on it, read by anybody.
struct SchedulerCounts: ~Copyable, Sendable {
  private let begun = Atomic<Int>(0)
  private let run = Atomic<Int>(0)
  private let jobs = Atomic<Int>(0)

  var eventsBegun: Int { begun.load(ordering: .acquiring) }
  var eventsRun: Int { run.load(ordering: .acquiring) }
  var jobsBegun: Int { jobs.load(ordering: .acquiring) }

  func beginEvent() { Self.countUp(begun) }
  func endEvent() { Self.countUp(run) }
  func beginJob() { Self.countUp(jobs) }

  /// There is only one writer at a time: this costs a fraction of an atomic addition.
  private static func countUp(_ count: borrowing Atomic<Int>) {
    count.store(count.load(ordering: .relaxed) &+ 1, ordering: .releasing)
  }
}
