import Foundation

/// A wait of a task in some work. A wait outside of work is not recorded, because nothing can wait for its end.
final class TaskWait: Equatable, @unchecked Sendable {
  enum Target {
    case operation(Operation)
    /// The keys, and then the end of the body that uses them.
    case keys(TaskKeys)
    /// One of these operations suffices.
    case oneOf(@Sendable () -> [AsyncOperation])
    /// Fewer unfinished members of a group than a number.
    case room(GroupEngine, below: Int)
    /// A turn in a serial queue.
    case turn(in: OperationQueue)
  }

  static func == (left: TaskWait, right: TaskWait) -> Bool { left === right }

  let work: Work
  let target: Target
  let began = CoarseTime.now
  /// Guarded by the lock of all waits, as are the next properties.
  var number = -1
  var schedule = WaitWatch.Schedule()
  private var resume: (@Sendable (OperationError) -> Void)?
  private(set) var refusal: OperationError?

  private init(_ work: Work, _ target: Target) { (self.work, self.target) = (work, target) }

  /// Records a wait of the current task, until the caller ends it. Nil outside of work.
  static func begin(_ target: @autoclosure () -> Target) -> TaskWait? {
    guard let work = currentWork else { return nil }
    let wait = TaskWait(work, target())
    WaitWatch.begin(wait)
    return wait
  }

  func end() { WaitWatch.withWaits { _ = $0.remove(number) } }

  /// Lets the wait be refused by this closure, which ends it. A wait without one only shows what its work waits for.
  func giveUp(by body: @escaping @Sendable (OperationError) -> Void) { WaitWatch.withWaits { _ in resume = body } }

  var isRefusable: Bool { WaitWatch.withWaits { $0.contains(number) && resume != nil && refusal == nil } }

  func refuse(with error: OperationError) {
    let resume = WaitWatch.withWaits { waits -> (@Sendable (OperationError) -> Void)? in
      guard waits.contains(number), refusal == nil else { return nil }
      refusal = error
      return self.resume
    }
    resume?(error)
  }

  func throwIfRefused() throws { if let refusal = WaitWatch.withWaits({ _ in refusal }) { throw refusal } }
}

/// Records that the current task waits for its turn in a serial queue. If it would wait forever, `giveUp` ends the wait, and
/// the call throws.
nonisolated(nonsending) func waitingForTurn<Value>(
  in queue: OperationQueue?,
  giveUp: @escaping @Sendable () -> Void,
  _ body: () async throws -> Value
) async throws -> Value {
  guard let queue, let wait = TaskWait.begin(.turn(in: queue)) else { return try await body() }
  defer { wait.end() }
  wait.giveUp { _ in giveUp() }
  do { return try await body() } catch {
    try wait.throwIfRefused()
    throw error
  }
}
