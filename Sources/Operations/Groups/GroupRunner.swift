import Foundation
import Synchronization

/// The work of taking members from an engine and starting them, one at a time, as long as there are any.
///
/// It belongs to the thread it runs on, so that the engine can tell whether a member became ready because the one that
/// runs here has finished: then this runner takes it next, and no other is needed.
final class GroupRunner: OperationStarter, @unchecked Sendable {
  private static let current = ThreadLocal<GroupRunner>()
  /// How many finished members are released at once.
  private static let batch = 64

  let engine: GroupEngine
  /// Only touched on the runner's thread, as the next two.
  private var member: Operation?
  private var hasFinished = false
  private var finished: [Operation] = []

  init(for engine: GroupEngine, clock: (any Clock<Duration>)?) {
    self.engine = engine
    super.init(clock: clock)
  }

  /// Makes the runner its thread's current one.
  func run<Result>(_ body: () -> Result) -> Result {
    defer { finished = [] }
    return GroupRunner.current.withValue(self, body)
  }

  /// Whether the current thread's runner works for `engine` and is about to take the next member: the one it runs has
  /// finished.
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

  /// Lets go of finished members a batch at a time, and not while another runner does.
  ///
  /// Most were allocated by one thread, and an operation is a dozen allocations. On Linux they all go back to that
  /// thread's arena, under its lock: two threads at it make each wait for the other, and the group take twice the time.
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

  /// Whether this is the current thread's runner, and `member` is the one it runs.
  private func isRunning(_ member: Operation) -> Bool { GroupRunner.current.current === self && self.member === member }

  override var hearsOfFailuresFirst: Bool { true }

  override func memberDidFinish(_ member: AsyncOperation, index: Int, failed: Bool, holdsSlot: Bool) {
    let isHere = isRunning(member)
    if isHere { hasFinished = true }
    let finished = FinishedMember(operation: member, index: index, holdsSlot: holdsSlot)
    engine.finished(finished, failed: failed, takenNext: isHere)
  }

  override func memberDidPause() { engine.slotIsFree() }
}
