import Foundation
import OperationsTestSupport
import Soak
import Testing

@testable import Operations

@Suite(.timeLimit(.minutes(5)))
struct OperationReleaseTests {
  @Test(arguments: [false, true])
  func observersAndCompletionBlocksThatCaptureItDoNotKeepIt(comeTooLate: Bool) async {
    let (live, called) = (LiveCount(), Gate())
    do {
      let operation = CountedOperation(live)
      if comeTooLate { await start(operation) }
      operation.addObserver(didFinish: { _ in _ = operation.name })
      operation.completionBlock = { withExtendedLifetime(operation) { called.open() } }
      if !comeTooLate {
        await OperationQueue().run(settling: [operation])
        await called.opened()
        #expect(operation.completionBlock == nil)
      }
    }
    await live.none()
  }

  @Test(arguments: [false, true])
  func finishedOrCancelled_releasesItsBlock(isCancelled: Bool) async {
    let live = LiveCount()
    let operations = [
      AsyncBlockOperation { [token = LiveCount.Token(live)] operation in
        withExtendedLifetime(token) { operation.finish() }
      },
      ResultOperation { [token = LiveCount.Token(live)] in withExtendedLifetime(token) {} },
    ]
    #expect(live.alive == 2)
    for operation in operations {
      if isCancelled { operation.cancel() }
      await start(operation)
    }
    #expect(live.alive == 0)
  }

  @Test(arguments: [1, 2, isThorough ? 100_000 : 35_000])
  func aFinishedChainIsReleasedWithoutRecursion(length: Int) async {
    let live = LiveCount()
    do {
      var chain: [Operation] = (0..<length).map { _ in CountedOperation(live) }
      for (first, second) in zip(chain, chain.dropFirst()) { first ==> second }
      let last = chain[length - 1]
      let group = GroupOperation(chain)
      chain = []
      await OperationQueue().run(settling: [group])
      withExtendedLifetime(last) {}
    }
    await live.none()
  }

  // MARK: A cancelled wait leaves nothing behind, however long the operation still takes

  @Test(arguments: [false, true])
  func cancelledWaitsForAnOperationOrTheWorkOfAGroup_areForgotten(isForTheWork: Bool) async {
    let held = HeldOperation()
    let group = await OperationQueue().add(GroupOperation([held]), until: held.begun)
    group.finishesWhenCancelled = true
    if isForTheWork { group.cancel() }
    var waiters: Int {
      isForTheWork ? group.engine.state.withLock { $0.drainWaiters.count } : held.core.withLock { $0.waiters.count }
    }
    let waits = (0..<100).map { _ in Task { if isForTheWork { await group.drained() } else { await held.finished() } } }
    await poll { waiters == 100 }
    for wait in waits.dropFirst() { wait.cancel() }
    for wait in waits.dropFirst() { await wait.value }
    #expect(waiters == 1)
    held.gate.open()
    await waits[0].value
  }

  @Test func aCancelledWaitForAPlainOperation_isForgotten() async {
    let (live, plain) = (LiveCount(), BlockOperation {})
    do {
      let cancel = plain.whenEnded(live.counted())
      #expect(live.alive == 1)
      cancel?()
    }
    await live.none()
    // Nothing of the wait is left that the operation would notify.
    await start(plain)
  }
}
