import Foundation
import Synchronization

/// A runner that takes members from a group's engine and starts them, one at a time, while there are ready members.
///
/// A runner belongs to one thread. The engine can therefore detect that a member became ready because the member of
/// this runner finished. The runner takes the ready member next, so the engine needs no other runner.
final class GroupRunner: OperationStarter, @unchecked Sendable {
  private static let current = ThreadLocal<GroupRunner>()
  /// The number of finished members that are released at once.
  private static let batch = 64

  let engine: GroupEngine
  // Accessed only on the runner's thread.
  private var member: Operation?
  private var hasFinished = false
  private var finished: [Operation] = []

  init(for engine: GroupEngine, clock: (any Clock<Duration>)?) {
    self.engine = engine
    super.init(clock: clock)
  }

  /// Calls `body` with this runner as the current runner of the thread.
  func run<Result>(_ body: () -> Result) -> Result {
    defer { finished = [] }
    return GroupRunner.current.withValue(self, body)
  }

  /// Whether the current thread has a runner of `engine` that is about to take the next member, because the runner's
  /// member has finished.
  static func isAboutToTake(from engine: GroupEngine) -> Bool {
    guard let runner = current.current, runner.engine === engine, let member = runner.member else { return false }
    return member.isFinished
  }

  func run(_ member: Operation, _ body: () -> Void) {
    self.member = member
    hasFinished = false
    body()
    self.member = nil
    if hasFinished { release(member) }
  }

  /// Releases finished members in batches, and not while another runner releases members.
  ///
  /// An operation consists of a dozen allocations, most of which were made by one thread. On Linux they return to the
  /// arena of that thread, under the arena's lock. If two threads release members at once, they contend for this lock,
  /// and the group takes twice the time.
  private func release(_ member: Operation) {
    finished.append(member)
    guard finished.count >= GroupRunner.batch else { return }
    if engine.isReleasing.exchange(true, ordering: .acquiring) {
      if finished.count < GroupRunner.batch * 16 { return }
      finished.removeAll(keepingCapacity: true)
    } else {
      finished.removeAll(keepingCapacity: true)
      engine.isReleasing.store(false, ordering: .releasing)
    }
  }

  /// Whether this runner is running `member` on the current thread.
  private func isRunning(_ member: Operation) -> Bool { GroupRunner.current.current === self && self.member === member }

  override var isNotifiedOfFailuresFirst: Bool { true }

  override func memberDidFinish(_ member: AsyncOperation, index: Int, failed: Bool, holdsSlot: Bool) {
    let isHere = isRunning(member)
    if isHere { hasFinished = true }
    let finished = FinishedMember(operation: member, index: index, holdsSlot: holdsSlot)
    engine.finished(finished, failed: failed, takenNext: isHere)
  }

  override func memberDidPause() { engine.releaseSlot() }
}

/// The queue of a group's runners. It has no limit, because the group counts its members itself.
final class GroupQueue: OperationQueue, ContinuingQueue, @unchecked Sendable {
  func continueOperation(_ body: @escaping @Sendable () -> Void) {
    let operation = BlockOperation(block: body)
    operation.qualityOfService = qualityOfService
    addOperation(operation)
  }
}
