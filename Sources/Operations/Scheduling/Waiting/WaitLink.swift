import Foundation

/// A thread that is blocked in ``SerialScheduler/wait(timeout:_:file:line:)``.
///
/// Links form a logical thread of control across threads. If a wait is called in the body of another wait, `previous`
/// leads to the other wait. The mutable state belongs to the ``WaitGraph``.
final class WaitLink: @unchecked Sendable {
  /// The innermost wait whose body the current thread is running.
  private static let innermost = ThreadLocal<WaitLink>()

  /// The scheduler that the thread runs for, or nil.
  let waiter: SerialScheduler?
  let target: SerialScheduler
  let previous: WaitLink?
  /// Whether the blocked thread may run other bodies for its scheduler. It may not in the middle of an actor's job,
  /// because nothing else may run there until the job suspends.
  let canServe: Bool

  /// Whether the wait goes on. It ends when its body has run or its timeout has expired.
  var isOpen = true
  /// The number of waits of the same scheduler that enclose this one.
  var depth = 0
  /// The wait whose thread runs the body, or nil if the body goes to the mailbox.
  var server: WaitLink?
  /// The events that the blocked thread must run.
  var inbox = ArrayDeque<EventTicket>()

  private let signal = DispatchSemaphore(value: 0)

  init(from waiter: SerialScheduler?, to target: SerialScheduler, after previous: WaitLink?, canServe: Bool) {
    self.waiter = waiter
    self.target = target
    self.previous = previous
    self.canServe = canServe
  }

  /// Creates a wait of the current thread.
  convenience init(to target: SerialScheduler) {
    let isJob = unsafe withUnsafeCurrentTask { task in unsafe task != nil }
    self.init(from: .current, to: target, after: Self.innermost.current, canServe: !isJob)
  }

  func wake() { signal.signal() }

  /// Blocks the thread until ``wake()`` is called or the deadline has passed.
  ///
  /// - Returns: False if the deadline has passed.
  func sleep(until deadline: DispatchTime) -> Bool { signal.wait(timeout: deadline) == .success }

  /// Runs the body of the wait.
  func run(_ body: EventTicket.Body) { Self.innermost.withValue(self) { body(nil) } }
}
