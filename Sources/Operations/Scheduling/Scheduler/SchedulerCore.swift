import Foundation
import Synchronization

/// The state of a scheduler, which the queue and its operations can use without keeping the scheduler alive.
final class SchedulerCore: Sendable {
  let name: String
  let capacity: EventCapacity?
  let mailbox: Locked<Mailbox>
  let time: ElapsedTime
  let instruments = Locked(SchedulerInstruments())
  // The scheduler's thread writes the counts, and any thread can read them.
  let eventsBegun = Atomic(0)
  let eventsRun = Atomic(0)
  let jobsBegun = Atomic(0)
  private let modes = Atomic<UInt8>(0)

  /// Keeps operations and drains in the order of the segments. Recursive, because Foundation is called under it and may
  /// call an overridden `isReady`, which may schedule an event. A thread that takes it must hold no other lock. Without it,
  /// a drain enqueued before an operation could run events that were scheduled after the operation.
  private let ordering = NSRecursiveLock()

  init(_ name: String, _ capacity: EventCapacity?, _ clock: any Clock<Duration>) {
    self.name = name
    self.capacity = capacity
    mailbox = Locked(Mailbox(capacity))
    time = ElapsedTime(clock)
  }

  func exclusively<Result>(_ body: () -> Result) -> Result { ordering.withLock(body) }

  /// Enqueues an operation after all events scheduled so far and before all later ones.
  func seal(_ enqueue: () -> Void) {
    ordering.withLock {
      enqueue()
      // The drain of the open segment precedes the operation, even if the operation's `isReady` opened the segment.
      mailbox.withLock { $0.seal() }
    }
  }

  /// What a drain and `schedule` check for each event, with one relaxed load.
  struct Mode: OptionSet {
    let rawValue: UInt8
    static let discarding = Self(rawValue: 1)
    static let instrumented = Self(rawValue: 2)
    static let suspended = Self(rawValue: 4)

    var isPlain: Bool { isDisjoint(with: [.discarding, .instrumented]) }
  }

  var mode: Mode { Mode(rawValue: modes.load(ordering: .relaxed)) }

  func set(_ mode: Mode, to isOn: Bool) {
    _ = isOn ? modes.bitwiseOr(mode.rawValue, ordering: .relaxed) : modes.bitwiseAnd(~mode.rawValue, ordering: .relaxed)
  }
}

extension Atomic<Int> {
  var count: Int { load(ordering: .acquiring) }

  // A load and a store suffice because only one thread writes at a time. They cost a fraction of an atomic addition.
  @inline(__always)
  func countUp() { store(load(ordering: .relaxed) &+ 1, ordering: .releasing) }
}
