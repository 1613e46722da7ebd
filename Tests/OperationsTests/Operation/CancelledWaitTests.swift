import Foundation
import OperationsTestSupport
import Soak
import Testing

@testable import Operations

/// A cancelled wait leaves nothing behind, however long the operation still takes.
@Suite(.timeLimit(.minutes(5)))
struct CancelledWaitTests {
  private let queue = OperationQueue()

  /// Starts waits, cancels all but the first, and returns the first.
  private func cancelAllButOne(
    of count: Int,
    _ waiters: @autoclosure () -> Int,
    _ wait: @escaping @Sendable () async -> Void
  ) async -> Task<Void, Never> {
    let waits = (0..<count).map { _ in Task { await wait() } }
    await poll { waiters() == count }
    for wait in waits.dropFirst() { wait.cancel() }
    for wait in waits.dropFirst() { await wait.value }
    return waits[0]
  }

  @Test func cancelledWaitsForAnOperation_areForgotten() async {
    let held = HeldOperation()
    await queue.add(held, until: held.begun)
    let rest = await cancelAllButOne(of: 100, held.core.withLock { $0.waiters.count }) { await held.finished() }
    #expect(held.core.withLock { $0.waiters.count } == 1)
    await held.finished(opening: held.gate)
    await rest.value
  }

  @Test func cancelledWaitsForTheWorkOfAGroup_areForgotten() async {
    let held = HeldOperation()
    let group = GroupOperation([held])
    group.finishesWhenCancelled = true
    await queue.add(group, until: held.begun)
    group.cancel()
    var waiters: Int { group.engine.state.withLock { $0.drainWaiters.count } }
    let rest = await cancelAllButOne(of: 100, waiters) { await group.drained() }
    #expect(waiters == 1)
    held.gate.open()
    await rest.value
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

  // MARK: The list

  @Test func waiters_areInTheOrderOfTheWaits_withoutThoseThatWereRemoved() {
    let journal = Journal<Int>()
    var list = WaiterList()
    let numbers = (0..<200).map { index in list.add { journal.write(index) } }
    for (index, number) in numbers.enumerated() where !index.isMultiple(of: 3) { #expect(list.remove(number) != nil) }
    #expect(list.remove(numbers[1]) == nil)
    for waiter in list.all { waiter() }
    #expect(journal.entries == (0..<200).filter { $0.isMultiple(of: 3) })
  }
}
