import Foundation
import OperationsTestSupport
import Testing

@testable import Operations

/// The quality of service of members and attempts. Linux has none: the quality of a thread is always the default there.
@Suite(.timeLimit(.minutes(5)))
struct GroupQualityTests {
  private let begun = Journal<QualityOfService>()
  private let journal = Journal<QualityOfService>()

  /// Starts the operation on a thread of the given quality, and expects that each piece of work has noted this quality.
  private func expectQuality(of operation: AsyncOperation, startedAt quality: QualityOfService, notes: Int) async {
    DispatchQueue.global(qos: quality.dispatchQoS.qosClass).async {
      begun.write(.current)
      operation.start()
    }
    await operation.finished()
    #expect(operation.isSuccessful)
    #expect(journal.entries == Array(repeating: begun.entries[0], count: notes))
  }

  @Test(arguments: [QualityOfService.userInitiated, .default, .utility])
  func afterABackgroundFinish_aChainKeepsTheQualityOfItsStart(_ quality: QualityOfService) async {
    let members = (0..<5).map { _ in
      AsyncBlockOperation { operation in
        journal.write(.current)
        DispatchQueue.global(qos: .background).async { operation.finish() }
      }
    }
    await expectQuality(of: GroupOperation(chain(members)), startedAt: quality, notes: 5)
  }

  @Test(arguments: [Duration.zero, .milliseconds(1)])
  func afterABackOff_anAttemptHasTheQualityOfTheStart(_ delay: Duration) async {
    let retry = RetryOperation<Int>(attempts: 3, backoff: .constant(delay)) { attempt in
      ResultOperation {
        journal.write(.current)
        if attempt < 3 { throw TestError("busy") }
        return attempt
      }
    }
    await expectQuality(of: retry, startedAt: .utility, notes: 3)
  }

  // MARK: What Foundation gets

  /// Whether the current thread runs an operation with this quality, which Foundation on Linux reports as well.
  private static func isExecuting(at quality: QualityOfService) -> Bool {
    OperationQueue.current?.operations.contains { $0.isExecuting && $0.qualityOfService == quality } == true
  }

  @Test func memberRunsAtItsOwnQuality_orAtThatOfItsGroup() async throws {
    let inherited = ResultOperation { Self.isExecuting(at: .utility) }
    let own = (0..<2).map { _ in ResultOperation { Self.isExecuting(at: .background) } }
    for operation in own { operation.qualityOfService = .background }
    own[1].addCondition("met") { _ in await Task.yield() }
    let group = GroupOperation([inherited] + own)
    group.qualityOfService = .utility
    try await OperationQueue().run(group)
    for operation in [inherited] + own { #expect(try operation.result?.get() == true) }
  }

  @Test func taskAfterABackgroundTask_hasThePriorityOfItsGroup() async throws {
    let first = TaskOperation(priority: .background) {}
    let (second, retry) = (
      TaskOperation { Task.currentPriority }, RetryOperation(attempts: 1) { _ async in Task.currentPriority }
    )
    [first] ==> [second, retry]
    try await OperationQueue().run(GroupOperation([first, second, retry]))
    for operation in [second, retry] { #expect(try operation.result?.get() == .medium) }
  }

  @Test func attemptHasTheQualityOfItsOperation() async throws {
    let backoff = Backoff.constant(.milliseconds(1))
    let ofOperations = RetryOperation<Bool>(attempts: 2, backoff: backoff) { attempt in
      ResultOperation {
        if attempt == 1 { throw TestError("busy") }
        return Self.isExecuting(at: .utility)
      }
    }
    let ofFunctions = RetryOperation(attempts: 2, backoff: backoff) { attempt async throws in
      if attempt == 1 { throw TestError("busy") }
      return Task.currentPriority == .utility
    }
    for retry in [ofOperations, ofFunctions] {
      retry.qualityOfService = .utility
      #expect(try await OperationQueue().run(retry))
    }
  }
}
