import Foundation
import Operations
import OperationsTestSupport
import Soak
import Testing

/// An operation is released once it has finished and nobody holds it.
@Suite(.timeLimit(.minutes(5)))
struct OperationReleaseTests {
  /// Lives as long as the operation itself, not only its work.
  private final class Counted: AsyncOperation, @unchecked Sendable {
    private let token: LiveCount.Token
    init(_ live: LiveCount) { token = LiveCount.Token(live) }
  }

  @Test(arguments: [false, true])
  func observersAndCompletionBlocksThatCaptureItDoNotKeepIt(comeTooLate: Bool) async {
    let (live, called) = (LiveCount(), Gate())
    do {
      let operation = Counted(live)
      if comeTooLate { await start(operation) }
      operation.addObserver(OperationObserver(didFinish: { _ in _ = operation.name }))
      operation.completionBlock = { withExtendedLifetime(operation) { called.open() } }
      if !comeTooLate {
        OperationQueue().addOperation(operation)
        await operation.finished()
        await called.opened()
        #expect(operation.completionBlock == nil)
      }
    }
    await live.none()
  }

  @Test(arguments: [false, true])
  func theBlockIsReleasedWhenTheOperationHasFinished(isCancelled: Bool) async {
    let live = LiveCount()
    let operation = AsyncBlockOperation { [token = LiveCount.Token(live)] operation in
      withExtendedLifetime(token) { operation.finish() }
    }
    if isCancelled { operation.cancel() }
    #expect(live.alive == 1)
    await start(operation)
    #expect(live.alive == 0)
  }

  @Test func dependenciesAreForgottenAtTheEnd() async {
    let (live, last) = (LiveCount(), AsyncOperation())
    do {
      let (first, second) = (Counted(live), Counted(live))
      first ==> second ==> last
      #expect(last.dependencies == [second])
      OperationQueue().addOperations([first, second, last])
      await last.finished()
    }
    #expect(last.dependencies.isEmpty)
    await live.none()
  }

  @Test(arguments: [1, 2, isThorough ? 100_000 : 40_000])
  func aFinishedChainIsReleasedWithoutRecursion(length: Int) async {
    let live = LiveCount()
    do {
      var chain: [Operation] = (0..<length).map { _ in Counted(live) }
      for (first, second) in zip(chain, chain.dropFirst()) { first ==> second }
      let last = chain[length - 1]
      let group = GroupOperation(chain)
      chain = []
      OperationQueue().addOperation(group)
      await group.finished()
      withExtendedLifetime(last) {}
    }
    await live.none()
  }

  @Test func aChainThatWasNeverStartedIsReleasedWithoutRecursion() {
    let live = LiveCount()
    do {
      var last: AsyncOperation = Counted(live)
      for _ in 0..<(isThorough ? 100_000 : 40_000) {
        let next = Counted(live)
        last ==> next
        last = next
      }
    }
    #expect(live.alive == 0)
  }

  @Test func aGroupThatWasNeverStartedIsReleasedAndItsMembersAreFreeAgain() async throws {
    let (live, member) = (LiveCount(), AsyncOperation())
    do { _ = GroupOperation([member, Counted(live)]) }
    #expect(live.alive == 0)
    try await OperationQueue().run(member)
  }

  @Test func nestedGroupsAreReleasedWithoutRecursion() {
    let live = LiveCount()
    do {
      var group: Operation = Counted(live)
      for _ in 0..<20_000 { group = GroupOperation([group]) }
    }
    #expect(live.alive == 0)
  }

  @Test func aFinishedMemberIsReleasedWhileItsGroupGoesOn() async {
    let (live, held) = (LiveCount(), HeldOperation())
    let group = GroupOperation([Counted(live), held])
    OperationQueue().addOperation(group)
    await held.begun.opened()
    await live.none()
    #expect(group.operations == [held])
    held.gate.open()
    await group.finished()
  }
}
