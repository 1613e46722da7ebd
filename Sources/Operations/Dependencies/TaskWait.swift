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
  /// Ends the wait. A wait without it cannot be refused, and only shows what its work waits for.
  private let giveUp: (@Sendable (OperationError) -> Void)?
  /// Guarded by the lock of all waits, as are the next properties.
  var number = -1
  var schedule = WaitWatch.Schedule()
  private(set) var refusal: OperationError?

  private init(_ work: Work, _ target: Target, _ giveUp: (@Sendable (OperationError) -> Void)?) {
    self.work = work
    self.target = target
    self.giveUp = giveUp
  }

  /// Records a wait of the current task, until the caller ends it. Nil outside of work.
  static func begin(
    _ target: @autoclosure () -> Target,
    givingUpBy giveUp: (@Sendable (OperationError) -> Void)? = nil
  ) -> TaskWait? {
    guard let work = currentWork else { return nil }
    let wait = TaskWait(work, target(), giveUp)
    WaitWatch.begin(wait)
    return wait
  }

  func end() { WaitWatch.withWaits { _ = $0.remove(number) } }

  var isRefusable: Bool { giveUp != nil }

  func refuse(with error: OperationError) {
    let isRefused = WaitWatch.withWaits { waits in
      guard waits.contains(number), refusal == nil else { return false }
      refusal = error
      return true
    }
    if isRefused { giveUp?(error) }
  }

  func throwIfRefused() throws { if let refusal = WaitWatch.withWaits({ _ in refusal }) { throw refusal } }
}

/// Records a wait of the current task in a serial queue. If it can never end, `giveUp` ends it, and the call throws.
nonisolated(nonsending) func waitingForTurn<Value>(
  in queue: OperationQueue?,
  giveUp: @escaping @Sendable () -> Void,
  _ body: () async throws -> Value
) async throws -> Value {
  guard let queue, let wait = TaskWait.begin(.turn(in: queue), givingUpBy: { _ in giveUp() }) else {
    return try await body()
  }
  defer { wait.end() }
  do { return try await body() } catch {
    try wait.throwIfRefused()
    throw error
  }
}
