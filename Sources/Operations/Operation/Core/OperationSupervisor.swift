import Foundation

/// The engine of a group. All calls are made without a lock held, on the thread where the event occurred. A class, so
/// that an uncounted reference takes one word: see ``OperationCore/supervisor``.
class OperationSupervisor: OperationStarter, @unchecked Sendable {
  /// Called when the member can be started, and again after a start in vain, because of a new dependency or because its
  /// keys were taken. A member that has arrived before has a number. One that has been called still has to take its keys.
  func memberIsReady(_ member: AsyncOperation, number: Int?, isCalled: Bool) {}

  /// Called when the member has taken its keys and a slot in one step.
  func memberHasSlot(_ member: AsyncOperation) {}

  /// Called when a member has given back its keys and its slot in one step, without finishing.
  func memberReturnedSlot() {}

  /// Returns the number of a member that begins to wait for its keys.
  func memberArrives() -> Int { 0 }

  /// Called when a member is cancelled that has not started. The supervisor starts it, without waiting for a slot, so that it finishes.
  func memberWasCancelled(_ member: AsyncOperation, wasNotReady: Bool) {
    if wasNotReady { memberIsReady(member, number: nil, isCalled: false) }
  }

  func memberPriorityWasChanged(_ member: AsyncOperation) {}

  var supervisedGroup: AsyncOperation? { nil }

  /// Returns the members to cancel, on the first call only. Some may still be refused, because they are elsewhere.
  func takeMembersToCancel() -> [Operation] { [] }

  func membersWereCancelled() {}

  func memberGainedDependency(_ member: AsyncOperation) {}

  /// Called when the work of a member, or of an operation inside it, continues after its end.
  func workContinues(_ work: ContinuingWork) {}

  /// Calls `waiter` when all members have finished and no work of them continues.
  func whenDrained(_ waiter: @escaping @Sendable () -> Void) { waiter() }

  func memberReportsProgress(_ member: AsyncOperation, index: Int) {}

  /// Returns whether the progress of the group around this one must be published as well.
  func publishProgress() -> Bool { false }
}

/// Work that may continue after the end of its operation, which timed out or finished when it was cancelled.
enum ContinuingWork {
  case members(of: OperationSupervisor)
  case task(Task<Void, Never>)

  func whenOver(_ body: @escaping @Sendable () -> Void) {
    switch self {
    case .members(let supervisor): supervisor.whenDrained(body)
    case .task(let task):
      Task.detached {
        await task.value
        body()
      }
    }
  }
}

extension OperationCore.End {
  func continuingWork(of operation: AsyncOperation) -> [ContinuingWork] {
    var work: [ContinuingWork] = []
    if let engine = operation.engineOfMembers { work.append(.members(of: engine)) }
    if let engine = extras?.inner?.engineOfMembers { work.append(.members(of: engine)) }
    if let task = extras?.task { work.append(.task(task)) }
    return work
  }
}

/// Starts operations for a supervisor. Each thread has its own, because threads that share one object would spend most
/// of their time on its reference count.
class OperationStarter: @unchecked Sendable {
  /// The clock of operations that have none of their own. Nil for the system's clock.
  let clock: (any Clock<Duration>)?

  init(clock: (any Clock<Duration>)? = nil) { self.clock = clock }

  /// Calls `body`, which releases the keys of a failed member and reports its end.
  func settleFailedMember(_ body: () -> Void) { body() }

  /// Called after the observers. If the member has failed or was cancelled, its dependents are notified after this call returns.
  func memberDidFinish(_ member: AsyncOperation, _ end: OperationCore.End) {}

  /// Called when an executing operation pauses, and releases its slot unless it has done so with its keys. It becomes
  /// ready again, and is started a second time.
  func memberDidPause(holdsSlot: Bool) {}
}
