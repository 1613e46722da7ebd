import Foundation

/// The work of taking members from an engine and starting them, one at a time, as long as there are any.
///
/// It belongs to the thread it runs on, so that the engine can tell whether a member became ready because the one that
/// runs here has finished: then this runner takes it next, and no other is needed.
final class GroupRunner {
  private static let current = ThreadLocal<GroupRunner>()

  private let engine: GroupEngine
  private var member: Operation?

  private init(for engine: GroupEngine) { self.engine = engine }

  /// Calls `body` with a runner that is the thread's current one.
  static func run<Result>(for engine: GroupEngine, _ body: (GroupRunner) -> Result) -> Result {
    let runner = GroupRunner(for: engine)
    return current.withValue(runner) { body(runner) }
  }

  /// Whether the current thread's runner works for `engine` and is about to take the next member: the one it runs has
  /// finished.
  static func isAboutToTake(from engine: GroupEngine) -> Bool {
    guard let runner = current.current, runner.engine === engine, let member = runner.member else { return false }
    return member.isFinished
  }

  /// Whether the current thread's runner is just starting `member`.
  static func isRunning(_ member: Operation) -> Bool { current.current?.member === member }

  func run(_ member: Operation, _ body: () -> Void) {
    self.member = member
    body()
    self.member = nil
  }
}
