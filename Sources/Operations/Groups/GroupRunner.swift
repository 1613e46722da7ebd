import Foundation

/// The work of taking members from an engine and starting them, one at a time, as long as there are any.
///
/// It belongs to the thread it runs on, so that the engine can tell whether a member became ready because the one that
/// runs here has finished: then this runner takes it next, and no other is needed.
final class GroupRunner: OperationStarter, @unchecked Sendable {
  private static let current = ThreadLocal<GroupRunner>()

  let engine: GroupEngine
  /// Only touched on the runner's thread.
  private var member: Operation?

  init(for engine: GroupEngine) { self.engine = engine }

  /// Makes the runner its thread's current one.
  func run<Result>(_ body: () -> Result) -> Result { GroupRunner.current.withValue(self, body) }

  /// Whether the current thread's runner works for `engine` and is about to take the next member: the one it runs has
  /// finished.
  static func isAboutToTake(from engine: GroupEngine) -> Bool {
    guard let runner = current.current, runner.engine === engine, let member = runner.member else { return false }
    return member.isFinished
  }

  func run(_ member: Operation, _ body: () -> Void) {
    self.member = member
    body()
    self.member = nil
  }

  /// Whether this is the current thread's runner, and `member` is the one it runs.
  private func isRunning(_ member: Operation) -> Bool { GroupRunner.current.current === self && self.member === member }

  override func memberDidFinish(_ member: AsyncOperation, index: Int, failed: Bool) {
    engine.finished(FinishedMember(operation: member, index: index), failed: failed, takenNext: isRunning(member))
  }
}
