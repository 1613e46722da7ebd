import Foundation
import OperationsTestSupport
import Soak
import Testing

@testable import Operations

private enum Request {
  @TaskLocal static var id = "none"
  @TaskLocal static var token: LiveCount.Token?
}

/// The task-local values of the task that creates an operation.
@Suite(.timeLimit(.minutes(5)))
struct TaskContextTests {
  private let queue = OperationQueue()

  @Test func aTaskOperationSeesTheValuesOfTheTaskThatCreatesIt() async throws {
    let (task, synchronous) = Request.$id.withValue("creator") {
      let task = TaskOperation {
        async let child = Request.id
        return await Request.id + " " + child + " " + Task { Request.id }.value
      }
      return (task, ResultOperation { Request.id })
    }
    #expect(try await Request.$id.withValue("runner") { try await queue.run(task) } == "creator creator creator")
    #expect(try await queue.run(synchronous) == "none" && Request.id == "none")
  }

  @Test func startedByHandInATaskItSeesThoseOfItsCreator() async throws {
    let operation = Request.$id.withValue("creator") { TaskOperation { Request.id } }
    Request.$id.withValue("starter") {
      operation.start()
      #expect(Request.id == "starter")
    }
    #expect(try await operation.value == "creator")
  }

  @Test func createdOutsideOfAnyTaskItHasNoContext() async throws {
    let (context, operation) = try await onThread { (TaskContext(), TaskOperation { Request.id }) }.get()
    #expect(context == nil)
    #expect(try await queue.run(operation) == "none")
  }

  @Test func theWorkIsOnNoActorAndNotInTheTaskOfTheCreator() async throws {
    let operation = await MainActor.run { TaskOperation { MainQueue.isCurrent } }
    #expect(try await queue.run(operation) == false)
    let creator = Task { TaskOperation { Task.isCancelled } }
    let born = await creator.value
    creator.cancel()
    #expect(try await queue.run(born) == false)
  }

  @Test func thePriorityIsThatOfTheThreadThatStartsIt() async throws {
    let make = { @Sendable in TaskOperation { Task.currentPriority } }
    let outside = try await queue.run(try await onThread { make() }.get())
    let inside = try await queue.run(await Task(priority: .background) { make() }.value)
    #expect(inside == outside)
  }

  // MARK: Memory

  /// An operation that holds the token both in its closure and in its context.
  private func operation(_ live: LiveCount) -> TaskOperation<Int> {
    let token = LiveCount.Token(live)
    return Request.$token.withValue(token) { TaskOperation { withExtendedLifetime(token) { 1 } } }
  }

  @Test func neverRunOrEnded_keepsNothing() async {
    let live = LiveCount()
    for _ in 0..<1000 { _ = operation(live) }
    _ = GroupOperation([operation(live)])
    await live.none()
    let (cancelled, finished, run) = (operation(live), operation(live), operation(live))
    cancelled.cancel()
    finished.finish(returning: 2)
    await queue.run(settling: [cancelled, finished, run])
    await live.none()
    withExtendedLifetime((cancelled, finished, run)) {}
  }

  @Test func aContextRunsItsWorkOnThisThreadAndOnce() async {
    let live = LiveCount()
    /// Not asynchronous, so that it may ask for the thread.
    func use() {
      let token = LiveCount.Token(live)
      let context = Request.$token.withValue(token) { TaskContext() }
      var thread: Thread?
      context?.run { thread = Thread.current }
      #expect(thread === Thread.current)
      context?.run { Issue.record("ran twice") }
    }
    use()
    await live.none()
  }
}
