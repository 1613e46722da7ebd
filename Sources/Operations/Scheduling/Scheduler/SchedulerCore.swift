import Foundation
import Synchronization

/// What a scheduler's queue and its operations need of it, without keeping it alive.
final class SchedulerCore: Sendable {
  let name: String
  let capacity: EventCapacity?
  let mailbox: Locked<Mailbox>
  let time: ElapsedTime
  let instruments = Locked(SchedulerInstruments())
  let counts = SchedulerCounts()
  let mode = SchedulerMode()

  /// Held while the queue is changed: so it has operations and drains in the order of the mailbox's segments.
  ///
  /// Foundation is called inside, and through it `isReady` of a foreign operation, which may schedule something: it is
  /// recursive, and no other lock is held.
  private let ordering = NSRecursiveLock()

  init(_ name: String, _ capacity: EventCapacity?, _ clock: any Clock<Duration>) {
    self.name = name
    self.capacity = capacity
    mailbox = Locked(Mailbox(capacity))
    time = ElapsedTime(clock)
  }

  func exclusively(_ body: () -> Void) { ordering.withLock(body) }

  /// Enqueues an operation behind all events that have been scheduled, and before those that will be.
  func seal(_ enqueue: () -> Void) {
    ordering.withLock {
      enqueue()
      // The drain of what has come until now, also from the operation's `isReady`, is in front of it.
      mailbox.withLock { $0.seal() }
    }
  }

  /// Changes the mailbox, with a segment that can be added to.
  ///
  /// - Parameters:
  ///   - always: Also after the scheduler has been shut down, when events are refused, and need no segment.
  ///   - enqueue: Called with the segment if it is a new one, which needs a drain.
  func post<Result>(always: Bool = false, enqueue: (MailboxSegment) -> Void, _ change: (inout Mailbox) -> Result)
    -> Result
  {
    func isReady(_ mailbox: borrowing Mailbox) -> Bool { mailbox.isOpen || (!always && mailbox.phase != .open) }
    let result = mailbox.withLock { mailbox in isReady(mailbox) ? change(&mailbox) : nil }
    if let result { return result }
    return ordering.withLock {
      let segment = MailboxSegment()
      let (result, isNew) = mailbox.withLock { mailbox in
        let isNew = !isReady(mailbox)
        if isNew { mailbox.start(segment) }
        return (change(&mailbox), isNew)
      }
      if isNew { enqueue(segment) }
      return result
    }
  }
}

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

/// Whether running an event takes more than running it. Read for every event, so it costs next to nothing.
struct SchedulerMode: ~Copyable, Sendable {
  struct Options: OptionSet {
    let rawValue: UInt8
    static let discarding = Self(rawValue: 1)
    static let instrumented = Self(rawValue: 2)
    static let suspended = Self(rawValue: 4)
  }

  private let options = Atomic<UInt8>(0)

  /// Whether nothing is measured or watched, and nothing discarded.
  var isPlain: Bool { current.isDisjoint(with: [.discarding, .instrumented]) }
  var isDiscarding: Bool { current.contains(.discarding) }
  var isSuspended: Bool { current.contains(.suspended) }

  private var current: Options { Options(rawValue: options.load(ordering: .relaxed)) }

  func insert(_ option: Options) { options.bitwiseOr(option.rawValue, ordering: .relaxed) }
  func remove(_ option: Options) { options.bitwiseAnd(~option.rawValue, ordering: .relaxed) }
}
