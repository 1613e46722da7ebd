import Foundation
import Operations
import OperationsTestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct TransformOperationTests {
  private final class Squaring: TransformOperation<Int, Int>, @unchecked Sendable {
    override func transform(_ input: Int) async throws -> Int {
      await Task.yield()
      return input * input
    }
  }

  private let queue = OperationQueue()

  @Test func aSynchronousClosureRunsOnTheQueuesThread() async throws {
    let lane = OperationQueue()
    let isOnQueue = TransformOperation { (_: Int) in OperationQueue.current === lane }
    isOnQueue.input = 1
    #expect(try await lane.run(isOnQueue))
  }

  @Test func anAsynchronousClosureOrASubclassRunsInATask() async throws {
    let asynchronous = TransformOperation { (input: Int) in
      await Task.yield()
      return unsafe withUnsafeCurrentTask { task in unsafe task != nil } ? input + 1 : 0
    }
    asynchronous.input = 1
    #expect(try await queue.run(asynchronous) == 2)
    let square = Squaring()
    square.input = 7
    #expect(try await queue.run(square) == 49)
  }

  @Test func whatItThrowsIsTheError() async {
    let synchronous = TransformOperation { (_: Int) -> Int in throw TestError("one") }
    synchronous.input = 1
    await #expect(throws: TestError("one")) { try await queue.run(synchronous) }
    let asynchronous = TransformOperation { (_: Int) async throws -> Int in throw TestError("two") }
    asynchronous.input = 1
    await #expect(throws: TestError("two")) { try await queue.run(asynchronous) }
  }

  @Test func withoutAnInputItFailsAndSaysSo() async {
    let operation = TransformOperation { (_: Int) in Issue.record("ran without an input") }.named("hungry")
    let error = await #expect(throws: OperationError.self) { try await queue.run(operation) }
    #expect(error?.code == .inputUnavailable && error?.message.contains("“hungry” has no input") == true)
  }

  @Test func anOptionalInputMayBeNone() async throws {
    let operation = TransformOperation { (input: Int?) in input == nil }
    #expect(try await queue.run(operation))
    let set = TransformOperation { (input: Int?) in input }
    set.input = 3
    #expect(try await queue.run(set) == 3)
  }

  @Test func theInputMayBeReadAndWrittenOnAnyThread() async {
    let operation = TransformOperation { (input: [Int]) in input }
    await onThreads(4) { thread in
      for _ in 0..<1000 {
        operation.input = [thread]
        _ = operation.input
      }
    }
    #expect(operation.input?.count == 1)
  }
}
