import Foundation
import Operations
import OperationsTestSupport

extension Gate {
  @available(*, noasync)
  func pass() {
    let signal = DispatchSemaphore(value: 0)
    whenOpen { signal.signal() }
    signal.wait()
  }
}

extension SerialScheduler {
  /// Returns when an event holds the scheduler, which it does until the gate is opened.
  func held() async -> Gate {
    let (begun, end) = (Gate(), Gate())
    schedule {
      begun.open()
      end.pass()
    }
    await begun.opened()
    return end
  }

  /// Opens a gate that holds the scheduler, and waits until everything that was scheduled has run.
  func drained(afterOpening gate: Gate) async {
    gate.open()
    await drained()
  }
}

extension Task where Failure == any Error {
  /// Opens a gate, and returns the value of the task.
  func value(opening gate: Gate) async throws -> Success {
    gate.open()
    return try await value
  }
}

/// Waits until a condition holds, or until the time limit cancels the test.
func poll(until condition: () -> Bool) async {
  while !condition(), !Task.isCancelled { await Task.yield() }
}

/// Runs code that may block on its own thread, which belongs to no scheduler.
func onThread<T: Sendable>(
  stackSize: Int? = nil,
  _ body: @escaping @Sendable () throws -> T
) async -> Result<T, any Error> {
  await withCheckedContinuation { continuation in
    let thread = Thread { continuation.resume(returning: Result { try body() }) }
    if let stackSize { thread.stackSize = stackSize }
    thread.start()
  }
}

/// Runs `body` on a thread whose stack is as small as that of a thread of the system's pool: 512 KiB.
func onSmallStack<T: Sendable>(_ body: @escaping @Sendable () throws -> T) async throws -> T {
  try await onThread(stackSize: 512 * 1024, body).get()
}

/// Starts a task, and returns when the task first suspends.
@discardableResult
func immediately<T: Sendable>(_ body: @escaping @Sendable () async throws -> T) -> Task<T, any Error> {
  guard #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) else { return Task { try await body() } }
  return Task.immediate { try await body() }
}

/// Starts a task that is cancelled before it calls `body`.
func cancelledTask<T: Sendable>(_ body: @escaping @Sendable () async throws -> T) -> Task<T, any Error> {
  Task {
    unsafe withUnsafeCurrentTask { task in unsafe task?.cancel() }
    return try await body()
  }
}

func work(for duration: Duration) {
  let end = ContinuousClock.now + duration
  while ContinuousClock.now < end {}
}

actor Notes: ScheduledActor {
  nonisolated let scheduler: SerialScheduler
  private let journal: Journal<String>

  init(on scheduler: SerialScheduler, _ journal: Journal<String> = Journal()) {
    self.scheduler = scheduler
    self.journal = journal
  }

  func note(_ text: String) { journal.write(text) }

  /// Runs `body` within a job of the actor.
  func perform<T: Sendable>(_ body: @Sendable () throws -> T) rethrows -> T { try body() }
}

extension Result where Failure == any Error {
  private var error: OperationError? { if case .failure(let error as OperationError) = self { error } else { nil } }

  /// The code of the package's error, if it ended with one.
  var code: OperationError.Code? { error?.code }

  var message: String { error?.message ?? "" }
}
