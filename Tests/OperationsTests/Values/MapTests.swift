import Foundation
import OperationsTestSupport
import Soak
import Testing

@testable import Operations

final class HeldResult: ResultOperation<Int>, @unchecked Sendable {
  let begun = Gate()

  override func execute() { begun.open() }

  var followerCount: Int { core.withLock { $0.ledger.dependents?.entries ?? [] }.count { $0.operation != nil } }
}

@Suite(.timeLimit(.minutes(5)))
struct MapTests {
  private let queue = OperationQueue()

  @Test func zipTakesAnyNumber() async throws {
    let (first, second) = (ResultOperation { 1 }, TaskOperation { "two" })
    let four = zip(first, second, ResultOperation { 3.0 }.map { $0 }, ResultOperation {})
    let (one, two, three, _) = try await queue.run(four)
    #expect(one == 1 && two == "two" && three == 3)
    try await queue.run(zip())
    let nested = zip(zip(ResultOperation { 1 }, ResultOperation { 2 }), four)
    let (pair, last) = try await queue.run(nested)
    #expect(pair == (1, 2) && last.1 == "two")
  }

  @Test func zipThatNoLongerWaitsForAnInput_fails() async {
    let (left, right) = (ResultOperation { 1 }, ResultOperation { 2 })
    let unpaired = zip(left, right)
    unpaired.removeDependency(right)
    await #expect(throws: OperationError(.inputUnavailable, "")) { try await queue.run(unpaired) }
    #expect(!unpaired.isCancelled, "nothing was passed")
  }

  @Test func collectTakesOperationsOfDifferentTypes() async throws {
    let operations: [any OutputOperation<Int>] = [
      ResultOperation { 1 }, TaskOperation { 2 }, ResultOperation { "three" }.map(\.count),
    ]
    #expect(try await queue.run(collect(operations)) == [1, 2, 5])
    let literal = collect([ResultOperation { 1 }, TaskOperation { 2 }.map { $0 }])
    #expect(try await queue.run(literal) == [1, 2])
  }

  @Test func collectOfOptionalInputs_leavesOutMissingOnes() async throws {
    let operations = (0..<6).map { index in
      ResultOperation<Int> { if index.isMultiple(of: 2) { index } else { throw TestError("odd") } }
    }
    #expect(try await queue.run(collect(operations, input: .optional)) == [0, 2, 4])
  }

  // MARK: flatMap

  @Test func flatMapRunsOperationsOfAnyKind_andTheErrorInsideIsTheRealOne() async throws {
    let (member, plain) = (Journal<String>(), ResultOperation { 1 })
    let group = plain.flatMap { value in GroupOperation("G") { ResultOperation { member.write("\(value)") } } }
    try await queue.run(group)
    #expect(member.entries == ["1"])
    let failing: [AsyncOperation] = [
      plain.flatMap { _ in AsyncBlockOperation { $0.finish(with: TestError("gone")) } },
      plain.flatMap { _ in TaskOperation<Int> { throw TestError("gone") }.named("inner").map { $0 + 1 } },
      plain.flatMap { _ -> ResultOperation<Int> in throw TestError("gone") },
    ]
    for page in failing { await #expect(throws: TestError("gone")) { try await queue.run(page) } }
  }

  @Test func flatMapNestedDeeplyInAQueueOfOne_doesNotBlock() async throws {
    @Sendable func countdown(_ number: Int) -> ResultOperation<Int> {
      number == 0 ? ResultOperation { 0 } : ResultOperation { number }.flatMap { countdown($0 - 1) }.map { $0 + 1 }
    }
    #expect(try await OperationQueue.limited(to: 1).run(countdown(200)) == 200)
  }

  @Test func whatIsCancelledInsideAFlatMapCancelsIt() async {
    let next = ResultOperation { 2 }
    next.cancel()
    let page = ResultOperation { 1 }.flatMap { _ in next }
    await #expect(throws: CancellationError.self) { try await queue.run(page) }
    #expect(page.isCancelled && page.errors.isEmpty)
  }

  @Test func whatRunsElsewhereIsOnlyWaitedFor() async throws {
    let login = HeldResult()
    queue.addOperation(login)
    let first = ResultOperation { 1 }.flatMap { _ in login }
    let second = ResultOperation { 2 }.flatMap { _ in login }
    for operation in [first, second] { queue.addGraph(endingIn: operation) }
    await poll { login.followerCount > 1 }
    second.cancel()
    await second.finished()
    #expect(!login.isCancelled)
    login.finish(returning: 7)
    #expect(try await first.value == 7)
    #expect(try await queue.run(ResultOperation { 3 }.flatMap { _ in login }) == 7)
  }

  enum Sharing: CaseIterable, Sendable { case operation, dependencyOfFlatMaps, dependencyOfRetries }

  @Test(arguments: Sharing.allCases)
  func ofTwoThatTakeInOneOperationTheSecondWaitsForIt(_ sharing: Sharing) async throws {
    for round in 0..<(isThorough ? 2_000 : 150) {
      let shared = ResultOperation { round }.map { $0 }
      let both = (0..<2).map { number -> ResultOperation<Int> in
        switch sharing {
        case .operation: ResultOperation { 0 }.flatMap { _ in shared }
        case .dependencyOfFlatMaps: ResultOperation { 0 }.flatMap { _ in shared.map { $0 + number } }
        case .dependencyOfRetries: RetryOperation(attempts: 1) { _ in shared.map { $0 + number } }
        }
      }
      let queue = OperationQueue()
      await onThreads(2) { queue.addGraph(endingIn: both[$0]) }
      for (number, operation) in both.enumerated() {
        await operation.finished()
        #expect(try operation.result?.get() == round + (sharing == .operation ? 0 : number))
      }
    }
  }

  @Test func oneThatIsCancelledForgetsWhatItFollowed() async throws {
    let followed = HeldResult()
    queue.addOperation(followed)
    for round in 0..<100 {
      let (operation, begun) = (ResultOperation { 0 }.flatMap { _ in followed }, Gate())
      operation.addObserver(didStart: { _ in begun.open() })
      queue.addGraph(endingIn: operation)
      await begun.opened()
      // Half of them may be on their way to follow it, the others do.
      if round.isMultiple(of: 2) { await poll { followed.followerCount > 0 } }
      operation.cancel()
      await operation.finished()
    }
    // One that was cancelled on its way there has ended a moment before it could forget it.
    await poll { followed.followerCount == 0 }
    followed.finish(returning: 1)
    await followed.finished()
  }

  @Test func chainOfFollowers_endsWithoutRecursion() async throws {
    let first = HeldResult()
    queue.addOperation(first)
    var last: ResultOperation<Int> = first
    let (group, started, count) = (GroupOperation(), Journal<Void>(), isThorough ? 20_000 : 5_000)
    for _ in 0..<count {
      last = ResultOperation { 0 }.flatMap { [last] _ in last }
      last.addObserver(didStart: { _ in started.write(()) })
      group.addGraph(endingIn: last)
    }
    queue.addOperation(group)
    await started.reaches(count)
    try await onSmallStack { _ = first.finish(returning: 7) }
    await group.finished()
    #expect(try last.result?.get() == 7)
  }

  // MARK: onFinish

  @Test func onFinishHearsOfEveryEnd() async throws {
    let outcomes = Journal<Result<Int, any Error>>()
    let (fine, failing) = (ResultOperation { 1 }, ResultOperation<Int> { throw TestError("x") })
    let cancelled = ResultOperation { 1 }
    cancelled.cancel()
    for operation in [fine, fine, failing, cancelled] {
      // The second time it has finished before.
      operation.onFinish { outcomes.write($0) }
      if !operation.isFinished { await queue.run(settling: [operation]) }
    }
    #expect(outcomes.entries.map { try? $0.get() } == [1, 1, nil, nil])
    #expect(throws: TestError("x")) { try outcomes.entries[2].get() }
    #expect(throws: CancellationError.self) { try outcomes.entries[3].get() }
  }

  @Test @MainActor func onFinishOnMainIsCalledInOrder_andNeverInside() async throws {
    let outcomes = Journal<Int>()
    let operations = (0..<50).map { index in ResultOperation { index } }
    // A queue may start an operation before the observers of the previous one have been called; a dependency does not.
    chain(operations)
    for operation in operations {
      operation.onFinishOnMain { result in
        MainActor.preconditionIsolated()
        outcomes.write((try? result.get()) ?? -1)
      }
    }
    try await OperationQueue.limited(to: 1).run(collect(operations))
    await outcomes.reaches(50)
    operations[0].onFinishOnMain { _ in outcomes.write(50) }
    #expect(outcomes.entries == Array(0..<50))
    await outcomes.reaches(51)
  }
}
