import Foundation

/// A thread that is blocked in ``SerialScheduler/wait(timeout:_:file:line:)``, and through whom it came to that.
///
/// What waits is the logical thread of control: `previous` leads to the wait within whose body this one was called, on
/// another thread. Its state belongs to the ``WaitGraph``.
final class WaitLink: @unchecked Sendable {
  /// The innermost wait whose body the current thread is running.
  private static let innermost = ThreadLocal<WaitLink>()

  /// Whose thread it is; none if it is nobody's.
  let waiter: SerialScheduler?
  let target: SerialScheduler
  let previous: WaitLink?
  /// Whether the blocked thread may run something for its scheduler meanwhile. Not in the middle of an actor's job:
  /// nothing else may run there before it suspends itself.
  let canServe: Bool

  /// Until its body has been run, or its time is over.
  var isOpen = true
  /// How many waits of its scheduler are around it.
  var depth = 0
  /// Whose thread is to run the body.
  var server: WaitLink?
  /// What this one's thread is to run.
  var inbox = ArrayDeque<EventTicket>()

  private let signal = DispatchSemaphore(value: 0)

  init(from waiter: SerialScheduler?, to target: SerialScheduler, after previous: WaitLink?, canServe: Bool) {
    self.waiter = waiter
    self.target = target
    self.previous = previous
    self.canServe = canServe
  }

  /// The wait of the current thread.
  convenience init(to target: SerialScheduler) {
    let isJob = unsafe withUnsafeCurrentTask { task in unsafe task != nil }
    self.init(from: .current, to: target, after: Self.innermost.current, canServe: !isJob)
  }

  func wake() { signal.signal() }

  /// - Returns: False if the time is over.
  func sleep(until deadline: DispatchTime) -> Bool { signal.wait(timeout: deadline) == .success }

  /// Runs the body of the wait.
  func run(_ body: EventTicket.Body) { Self.innermost.withValue(self) { body(nil) } }
}
