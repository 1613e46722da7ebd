import Foundation
import Operations
import OperationsTestSupport
import Testing

/// The delays between the attempts of a retry, and between the operations of a repetition.
@Suite(.timeLimit(.minutes(5)))
struct BackingOffTests {
  enum Kind: CaseIterable, Sendable { case retry, repetition }

  private let queue = OperationQueue()
  private let clock = ManualClock()
  private let journal = Journal<String>()

  /// Runs operations that write their number, with a delay after each. A repetition ends after a last delay.
  private func operation(_ kind: Kind, count: Int = 2, _ backoff: Backoff = .constant(.seconds(1))) -> AsyncOperation {
    switch kind {
    case .retry:
      RetryOperation(attempts: count, backoff: backoff) { number in
        ResultOperation { [journal] in
          journal.write("\(number)")
          if number < count { throw TestError("\(number)") }
        }
      }
    case .repetition:
      RepeatOperation(pausing: backoff) { $0 <= count ? NoteOperation("\($0)", journal) : nil }
    }
  }

  /// A group that runs one member at a time.
  private func group(_ members: [Operation]) -> GroupOperation {
    let group = GroupOperation(members)
    group.clock = clock
    group.maxConcurrentOperationCount = 1
    return group
  }

  @Test(arguments: Kind.allCases)
  func theDelaysFollowTheClock(_ kind: Kind) async throws {
    let operation = operation(kind, count: 3, .exponential(initial: .seconds(1), cap: .seconds(60)))
    operation.clock = clock
    queue.addOperation(operation)
    for (index, delay) in [1, 2, 4].prefix(kind == .retry ? 2 : 3).enumerated() {
      await clock.waitForSleepers(1)
      #expect(journal.count == index + 1 && operation.isExecuting)
      clock.advance(by: .seconds(delay) - .milliseconds(1))
      #expect(clock.sleepers == 1)
      clock.advance(by: .milliseconds(1))
    }
    try await operation.completed()
    #expect(journal.entries == ["1", "2", "3"])
  }

  // MARK: Slots

  @Test(arguments: Kind.allCases)
  func itKeepsNoSlotOfAGroup(_ kind: Kind) async throws {
    let operation = operation(kind)
    let group = group([operation] + (0..<3).map { NoteOperation("other \($0)", journal) })
    let run = Task { try await queue.run(group) }
    await journal.reaches(4)
    #expect(operation.isExecuting)
    for _ in 0..<(kind == .retry ? 1 : 2) {
      await clock.waitForSleepers(1)
      clock.advance(by: .seconds(1))
    }
    try await run.value
    #expect(journal.entries == ["1", "other 0", "other 1", "other 2", "2"])
  }

  @Test func afterADelayItWaitsForASlot() async throws {
    let (retry, held) = (operation(.retry), HeldOperation())
    let group = group([retry, held])
    let run = Task { try await queue.run(group) }
    await held.begun.opened()
    clock.advance(by: .seconds(1))
    #expect(journal.count == 1 && retry.isExecuting)
    held.gate.open()
    try await run.value
    #expect(journal.entries == ["1", "2"])
  }

  @Test func aSuspendedGroupGoesOnWithItWhenItIsResumed() async throws {
    let group = group([operation(.retry)])
    let run = Task { try await queue.run(group) }
    await clock.waitForSleepers(1)
    group.isSuspended = true
    clock.advance(by: .seconds(1))
    #expect(journal.count == 1)
    group.isSuspended = false
    try await run.value
    #expect(journal.count == 2)
  }

  @Test(arguments: Kind.allCases, [false, true])
  func cancelledInAGroup_itFreesNobodysSlotAndTakesNone(_ kind: Kind, isOver: Bool) async throws {
    let (operation, held) = (operation(kind), HeldOperation())
    let waiting = ResultOperation { held.isFinished }
    let group = group([operation, held, waiting])
    await queue.add(group, until: held.begun)
    if isOver { clock.advance(by: .seconds(1)) }
    operation.cancel()
    #expect(operation.isFinished)
    // Behind what is left of the operation.
    group.addOperation(AsyncOperation())
    await giveEveryOpportunity()
    held.gate.open()
    await group.finished()
    #expect(group.errors.isEmpty && (try? waiting.result?.get()) == true)
  }

  /// Gives other threads the time to take a slot that is not free.
  private func giveEveryOpportunity() async {
    for _ in 0..<20 { try? await OperationQueue().run(AsyncOperation()) }
  }

  @Test func oneThatHasAKeyKeepsItsSlotBecauseTheHolderOfTheSlotMightWantTheKey() async throws {
    let (domain, held, inner) = (ExclusivityDomain(), HeldOperation(), GroupOperation {})
    held ==> inner
    inner.addOperation(NoteOperation("wanting", journal).exclusive("key", in: domain))
    let group = group([])
    group.addOperation(operation(.retry).exclusive("key", in: domain))
    group.addOperation(inner)
    queue.addOperations([held, group])
    await clock.waitForSleepers(1)
    held.gate.open()
    await giveEveryOpportunity()
    #expect(!inner.isExecuting)
    clock.advance(by: .seconds(1))
    await group.finished()
    #expect(group.isSuccessful && journal.entries.last == "wanting")
  }

  @Test func cancelled_oneThatHasAKeyGivesItsSlotBack() async {
    let (retry, after, held) = (operation(.retry), NoteOperation("after", journal), HeldOperation())
    held ==> after
    let group = group([])
    group.addOperation(retry.exclusive("key", in: ExclusivityDomain()))
    group.addOperation(after)
    queue.addOperations([held, group])
    await clock.waitForSleepers(1)
    held.gate.open()
    retry.cancel()
    await group.finished()
    #expect(after.isSuccessful && clock.sleepers == 0)
  }

  // MARK: The end

  @Test(arguments: Kind.allCases)
  func cancelled_itFinishesAtOnce(_ kind: Kind) async {
    let operation = operation(kind)
    operation.clock = clock
    queue.addOperation(operation)
    await clock.waitForSleepers(1)
    operation.cancel()
    #expect(operation.isFinished && clock.sleepers == 0)
    await #expect(throws: CancellationError.self) { try await operation.completed() }
    #expect(journal.count == 1)
    if kind == .retry { #expect(attemptErrors(of: operation) == [TestError("1")]) }
  }

  private func attemptErrors(of operation: AsyncOperation) -> [TestError]? {
    (operation as? RetryOperation<Void>)?.attemptErrors as? [TestError]
  }

  @Test(arguments: Kind.allCases)
  func cancellingTheGroupEndsTheDelay(_ kind: Kind) async {
    let group = group([operation(kind)])
    queue.addOperation(group)
    await clock.waitForSleepers(1)
    group.cancel()
    await group.finished()
    #expect(journal.count == 1 && clock.sleepers == 0)
  }

  @Test(arguments: Kind.allCases)
  func itsOwnTimeoutCoversTheDelays(_ kind: Kind) async {
    let operation = operation(kind, count: 100)
    operation.clock = clock
    operation.timeout = .milliseconds(1500)
    queue.addOperation(operation)
    await clock.waitForSleepers(2)
    clock.advance(by: .seconds(1))
    await journal.reaches(2)
    await clock.waitForSleepers(2)
    clock.advance(by: .seconds(1))
    let error = await #expect(throws: OperationError.self) { try await operation.completed() }
    #expect(error?.code == .timedOut && journal.count == 2 && clock.sleepers == 0)
  }

  @Test(arguments: Kind.allCases)
  func cancelledAtAnyMoment_itFinishesOnceAndKeepsTheSlotsRight(_ kind: Kind) async {
    for round in 0..<300 {
      let operations = (0..<4).map { _ in operation(kind, count: 4) }
      let others = (0..<4).map { _ in AsyncOperation() }
      let (group, clock) = (group(operations + others), ManualClock())
      group.clock = clock
      queue.addOperation(group)
      await onThreads(2) { thread in
        for index in 0..<4 {
          if thread == 0 { clock.advance(by: .seconds(1)) } else { operations[(index + round) % 4].cancel() }
        }
      }
      await group.finished()
      #expect(operations.allSatisfy(\.isFinished) && others.allSatisfy(\.isSuccessful))
    }
  }

  // MARK: What runs

  /// An operation whose first inner operation executes, and is the only one.
  private func running(_ kind: Kind) async -> (AsyncOperation, HeldOperation) {
    let held = HeldOperation()
    let operation: AsyncOperation
    switch kind {
    case .retry:
      operation = RetryOperation(attempts: 5) { number in
        #expect(number == 1)
        return held
      }
    case .repetition:
      operation = RepeatOperation { number in
        #expect(number == 1)
        return held
      }
    }
    await queue.add(operation, until: held.begun)
    return (operation, held)
  }

  @Test(arguments: Kind.allCases)
  func cancellingCancelsWhatRuns(_ kind: Kind) async {
    let (operation, held) = await running(kind)
    operation.cancel()
    #expect(held.isCancelled && !operation.isFinished)
    held.gate.open()
    await #expect(throws: CancellationError.self) { try await operation.completed() }
    #expect(operation.errors.isEmpty)
  }

  @Test(arguments: Kind.allCases)
  func whatIsCancelledByItselfCancelsIt(_ kind: Kind) async {
    let (operation, held) = await running(kind)
    held.cancel()
    held.gate.open()
    await #expect(throws: CancellationError.self) { try await operation.completed() }
    #expect(operation.isCancelled && operation.errors.isEmpty)
    if kind == .retry { #expect(attemptErrors(of: operation) == []) }
  }
}
