import Foundation
import Operations
import OperationsTestSupport
import Soak
import Testing

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
}
