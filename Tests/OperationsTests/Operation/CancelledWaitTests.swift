import Foundation
import OperationsTestSupport
import Soak
import Testing

@testable import Operations

/// A cancelled wait leaves nothing behind, however long the operation still takes.
@Suite(.timeLimit(.minutes(5)))
struct CancelledWaitTests {
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

  /// The wait itself calls the closure that the test above calls.
  @Test func aCancelledTask_unregistersItsWait() async {
    let unregistered = Gate()
    let task = cancelledTask { await waitOrUnregister { _ in { unregistered.open() } } }
    try? await task.value
    #expect(unregistered.isOpen)
    let other = Gate()
    await waitOrUnregister { resume in
      resume()
      return { other.open() }
    }
    #expect(!other.isOpen)
  }

  @Test func waiters_areInTheOrderOfTheWaits_withoutThoseThatWereRemoved() {
    let journal = Journal<Int>()
    var list = NumberedList<Waiter>()
    let numbers = (0..<200).map { index in list.append { journal.write(index) } }
    for (index, number) in numbers.enumerated() where !index.isMultiple(of: 3) { #expect(list.remove(number) != nil) }
    #expect(list.remove(numbers[1]) == nil)
    for waiter in list.elements { waiter() }
    #expect(journal.entries == (0..<200).filter { $0.isMultiple(of: 3) })
  }
}
