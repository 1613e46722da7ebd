import Foundation
import Synchronization

/// The state of a scheduler.
///
/// The core is separate from the scheduler, so that the queue and its operations can use it without keeping the
/// scheduler alive.
final class SchedulerCore: Sendable {
  let name: String
  let capacity: EventCapacity?
  let mailbox: Locked<Mailbox>
  let time: ElapsedTime
  let instruments = Locked(SchedulerInstruments())
  let counts = Counts()
  let mode = Mode()

  /// The lock that is held while the queue changes. It keeps operations and drains in the order of the mailbox's
  /// segments.
  ///
  /// Foundation is called under this lock and may call an overridden `isReady`, which may schedule an event. The lock
  /// is therefore recursive, and a thread that takes it must hold no other lock.
  private let ordering = NSRecursiveLock()

  init(_ name: String, _ capacity: EventCapacity?, _ clock: any Clock<Duration>) {
    self.name = name
    self.capacity = capacity
    mailbox = Locked(Mailbox(capacity))
    time = ElapsedTime(clock)
  }

  /// Calls `body` while no operation or drain can be enqueued.
  func exclusively(_ body: () -> Void) { ordering.withLock(body) }

  /// Enqueues an operation after all events scheduled so far and before all later ones.
  func seal(_ enqueue: () -> Void) {
    ordering.withLock {
      enqueue()
      // The drain of the open segment precedes the operation, even if the operation's `isReady` opened the segment.
      mailbox.withLock { $0.seal() }
    }
  }

  /// Changes the mailbox, opening a segment first if there is none.
  ///
  /// - Parameters:
  ///   - always: Whether to open a segment even after a shutdown. Refused events need no segment.
  ///   - enqueue: Enqueues the drain of a newly opened segment.
  func post<Result>(always: Bool = false, enqueue: (Mailbox.Segment) -> Void, _ change: (inout Mailbox) -> Result)
    -> Result
  {
    func isReady(_ mailbox: borrowing Mailbox) -> Bool {
      mailbox.hasOpenSegment || (!always && mailbox.phase != .open)
    }
    let result = mailbox.withLock { mailbox in isReady(mailbox) ? change(&mailbox) : nil }
    if let result { return result }
    return ordering.withLock {
      let segment = Mailbox.Segment()
      let (result, isNew) = mailbox.withLock { mailbox in
        let isNew = !isReady(mailbox)
        if isNew { mailbox.open(segment) }
        return (change(&mailbox), isNew)
      }
      if isNew { enqueue(segment) }
      return result
    }
  }
}

extension SchedulerCore {
  /// The numbers of events and jobs that have run. The scheduler's thread writes them, and any thread can read them.
  struct Counts: ~Copyable, Sendable {
    private let begun = Atomic<Int>(0)
    private let run = Atomic<Int>(0)
    private let jobs = Atomic<Int>(0)

    var eventsBegun: Int { begun.load(ordering: .acquiring) }
    var eventsRun: Int { run.load(ordering: .acquiring) }
    var jobsBegun: Int { jobs.load(ordering: .acquiring) }

    func beginEvent() { Self.countUp(begun) }
    func endEvent() { Self.countUp(run) }
    func beginJob() { Self.countUp(jobs) }

    /// A load and a store suffice because only one thread writes at a time. They cost a fraction of an atomic addition.
    private static func countUp(_ count: borrowing Atomic<Int>) {
      count.store(count.load(ordering: .relaxed) &+ 1, ordering: .releasing)
    }
  }

  /// The flags that a drain and `schedule` check for each event, with one relaxed load.
  struct Mode: ~Copyable, Sendable {
    struct Options: OptionSet {
      let rawValue: UInt8
      static let discarding = Self(rawValue: 1)
      static let instrumented = Self(rawValue: 2)
      static let suspended = Self(rawValue: 4)
    }

    private let options = Atomic<UInt8>(0)

    /// Whether events are neither discarded nor instrumented.
    var isPlain: Bool { current.isDisjoint(with: [.discarding, .instrumented]) }
    var isDiscarding: Bool { current.contains(.discarding) }
    var isSuspended: Bool { current.contains(.suspended) }

    private var current: Options { Options(rawValue: options.load(ordering: .relaxed)) }

    func insert(_ option: Options) { options.bitwiseOr(option.rawValue, ordering: .relaxed) }
    func remove(_ option: Options) { options.bitwiseAnd(~option.rawValue, ordering: .relaxed) }
  }
}
