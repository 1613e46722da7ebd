import Foundation
import Operations
import OperationsTestSupport
import Testing

/// Graphs of every possible shape, including those that should not be built.
@Suite(.timeLimit(.minutes(5)))
struct HostileShapeTests {
  static let lines = [
    HostileCase("a dependency that never was, taken back", gets: "success") {
      let operation = AsyncOperation()
      let others: [Operation] = [AsyncOperation(), operation, BlockOperation {}]
      for other in others { operation.removeDependency(other) }
      return await ending(operation)
    },
    HostileCase("groups in groups, built from outside", gets: "success") {
      let outer = GroupOperation([])
      var group = outer
      for _ in 1..<500 {
        let inner = GroupOperation([])
        group.addOperation(inner)
        group = inner
      }
      return await ending(outer)
    },
    HostileCase("attempts in attempts", gets: "1") {
      @Sendable func retry(_ depth: Int) -> ResultOperation<Int> {
        depth == 0 ? ResultOperation { 1 } : RetryOperation(attempts: 1) { _ in retry(depth - 1) }
      }
      return "\(try await OperationQueue().run(retry(200)))"
    },
    HostileCase("two that wait for each other, as a graph in a queue", gets: "cycle, cycle; cancelled") {
      let (first, last, queue) = (AsyncOperation(), AsyncOperation(), OperationQueue())
      first ==> last ==> first
      queue.addGraph(endingIn: last)
      let causes = queue.stallReport().entries.map { "\($0.cause)" }.joined(separator: ", ")
      // The last one first, because the other one makes it ready when it finishes.
      last.cancel()
      queue.cancelAllOperations()
      do { try await last.completed() } catch { return "\(causes); \(words(error))" }
      return "success"
    },
    HostileCase("a flatMap to what waits for it", gets: "dependencyCycle") {
      let next = Journal<ResultOperation<Int>>()
      let first = ResultOperation { 1 }.flatMap { _ in next.entries[0] }
      next.write(first ==> ResultOperation { 2 })
      return "\(try await OperationQueue().run(first))"
    },
    HostileCase("an attempt that waits for the whole", gets: "dependencyCycle") {
      let itself = Journal<ResultOperation<Int>>()
      let retry = RetryOperation(attempts: 1) { _ in itself.entries[0] ==> ResultOperation { 2 } }
      itself.write(retry)
      return "\(try await OperationQueue().run(retry))"
    },
    HostileCase("nothing ==> a, a ==> nothing, nothing ==> nothing", gets: "success") {
      let (operation, nothing) = (AsyncOperation(), [Operation]())
      nothing ==> operation ==> nothing ==> nothing
      operation.waits(for: nothing)
      return await ending(operation)
    },
    HostileCase("pictures of nothing", gets: "0, 0, true") {
      let (graph, report) = (OperationGraph([]), OperationQueue().stallReport())
      _ = (graph.mermaid(), graph.dot(), report.description)
      return "\(graph.nodes.count), \(report.entries.count), \(graph.cycle == nil && graph.criticalPath == nil)"
    },
    HostileCase("zip of one with itself", gets: "(1, 1)") {
      let one = ResultOperation { 1 }
      return "\(try await OperationQueue().run(zip(one, one)))"
    },
    HostileCase("collect of nothing", gets: "[]") {
      "\(try await OperationQueue().run(collect([ResultOperation<Int>]())))"
    },
    HostileCase("passing the same value twice", gets: "1") {
      let (one, same) = (ResultOperation { 1 }, TransformOperation { (value: Int) in value })
      one.pass(to: one.pass(to: same))
      return "\(try await OperationQueue().run(same))"
    },
    HostileCase("the same one twice in the array of a group", gets: "success") {
      let operation = AsyncOperation()
      return await ending(GroupOperation([operation, operation]))
    },
    HostileCase("a graph that has run, added again", gets: "1") {
      let one = ResultOperation { 1 }
      _ = try await OperationQueue().run(one)
      OperationQueue().addGraph(endingIn: one)
      return "\(try await one.value)"
    },
    HostileCase("a graph whose end is in another queue", gets: "1") {
      let (one, elsewhere) = (ResultOperation { 1 }, OperationQueue.suspended())
      elsewhere.addOperation(one)
      OperationQueue().addGraph(endingIn: one)
      elsewhere.isSuspended = false
      return "\(try await one.value)"
    },
  ]

  @Test(arguments: lines) func getsWhatIsExpected(_ line: HostileCase) async { await line.check() }
}
