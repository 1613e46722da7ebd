import Foundation
import Operations
import OperationsTestSupport
import Testing

/// What an operation does that finds its key taken.
@Suite(.timeLimit(.minutes(5)))
struct ExclusivityPolicyTests {
  private let domain = ExclusivityDomain()
  private let queue = OperationQueue()
  private let journal = Journal<String>()

  private func held(_ name: String, _ keys: ExclusivityKey..., policy: ExclusivityPolicy = .wait) -> HeldOperation {
    let operation = HeldOperation().named(name)
    queue.addOperation(operation, exclusive: keys, policy: policy, in: domain)
    return operation
  }

  // MARK: Drop

  @Test func aDroppedOperationFinishesUnexecutedAndSaysWhy() async throws {
    let first = held("first", "a")
    let second = NoteOperation("second", journal)
    let next = NoteOperation("next", journal)
    second ==> next
    queue.addOperation(next)
    #expect(!queue.addOperation(second, exclusive: "b", "a", policy: .drop, in: domain))
    #expect(second.isFinished && second.isCancelled && second.errors.count == 1)
    let error = try #require(second.errors.first as? OperationError)
    #expect(error.code == .excluded)
    #expect(error.message == "“second” was not executed, for “first” has the key “a”.")
    await next.finished()
    #expect(journal.entries == ["next"] && domain.holder(of: "b") == nil)
    first.gate.open()
    await first.finished()
  }

  @Test func aDroppedPlainOperationFinishesUnexecuted() async {
    let first = held("first", "a")
    let second = plain("second", journal)
    let next = plain("next", journal)
    next.addDependency(second)
    queue.addOperation(next)
    #expect(!queue.addOperation(second, exclusive: "a", policy: .drop, in: domain))
    #expect(second.isFinished && second.isCancelled)
    await next.finished()
    #expect(journal.entries == ["next"])
    first.gate.open()
    await first.finished()
  }

  @Test func aFullQueueDoesNotKeepADroppedOperationFromFinishing() async {
    let single = OperationQueue.limited(to: 1)
    let first = HeldOperation()
    single.addOperation(first, exclusive: "a", in: domain)
    await first.begun.opened()
    await #expect(throws: OperationError(.excluded, "")) {
      try await single.run(AsyncOperation(), exclusive: "a", policy: .drop, in: domain)
    }
    first.gate.open()
    await first.finished()
  }

  @Test func aKeyThatIsWaitedForIsTaken() async {
    let first = held("first", "a")
    let second = held("second", "a", "b")
    let third = NoteOperation("third", journal)
    #expect(!queue.addOperation(third, exclusive: "b", policy: .drop, in: domain))
    #expect(third.errors.map { "\($0)" } == ["“third” was not executed, for “second” has the key “b”."])
    first.gate.open()
    second.gate.open()
    await second.finished()
  }

  @Test func withAFreeKeyItExecutes() async {
    let operations: [Operation] = [NoteOperation("own", journal), plain("foreign", journal)]
    for operation in operations {
      #expect(queue.addOperation(operation, exclusive: "a", policy: .drop, in: domain))
      await operation.finished()
    }
    #expect(journal.entries == ["own", "foreign"])
  }

  /// Also before it has been able to say so: a plain operation is heard of on another thread.
  @Test func aKeyIsFreeForWhoeverHasSeenItsHolderFinish() async {
    for round in 0..<200 {
      let holder: Operation = round.isMultiple(of: 2) ? NoteOperation("", journal) : plain("", journal)
      queue.addOperation(holder, exclusive: "a", in: domain)
      while !holder.isFinished { await Task.yield() }
      #expect(domain.holder(of: "a") == nil)
      let next = plain("", journal)
      #expect(queue.addOperation(next, exclusive: "a", policy: .drop, in: domain))
      await next.finished()
    }
  }

  @Test func anObserverOfTheEndFindsTheKeyFree() async {
    let next = NoteOperation("next", journal)
    let first = NoteOperation("first", journal)
    first.addObserver(
      OperationObserver(didFinish: { [queue, domain] _ in
        #expect(queue.addOperation(next, exclusive: "a", policy: .drop, in: domain))
      })
    )
    queue.addOperation(first, exclusive: "a", in: domain)
    await next.finished()
    #expect(journal.entries == ["first", "next"])
  }

  @Test func aPlainWaiterThatHasFinishedIsNotInTheWay() async {
    let holder = held("holder", "a")
    for _ in 0..<100 {
      let waiter = plain("", journal)
      queue.addOperation(waiter, exclusive: "a", "b", in: domain)
      waiter.cancel()
      await waiter.finished()
      let next = plain("", journal)
      #expect(queue.addOperation(next, exclusive: "b", policy: .drop, in: domain))
      await next.finished()
    }
    holder.gate.open()
    await holder.finished()
  }

  @Test func allKeysOfAGroupWithPlainMembersAreFreeForItsObservers() async {
    let dropped = Journal<Bool>()
    for _ in 0..<100 {
      let group = GroupOperation()
      for _ in 0..<3 { group.addOperation(plain("", journal), exclusive: "a", in: domain) }
      group.addObserver(
        OperationObserver(didFinish: { [queue, domain] _ in
          dropped.write(!queue.addOperation(AsyncOperation(), exclusive: "b", policy: .drop, in: domain))
        })
      )
      queue.addOperation(group, exclusive: "a", "b", in: domain)
      await queue.finished()
    }
    #expect(dropped.count == 100 && !dropped.entries.contains(true))
  }

  /// It does not let itself be cancelled.
  private final class Stubborn: Operation, @unchecked Sendable {
    let executed = Gate()
    override func cancel() {}
    override func main() { executed.open() }
  }

  @Test func aPlainOperationThatCannotBeCancelledWaitsInstead() async {
    for isReady in [true, false] {
      let holder = held("holder", "a")
      let stubborn = Stubborn()
      let dependency = AsyncOperation()
      if !isReady { dependency ==> stubborn }
      #expect(queue.addOperation(stubborn, exclusive: "a", policy: .drop, in: domain))
      await start(dependency)
      while domain.waiting(for: "a") != ["Stubborn"] { await Task.yield() }
      let last = held("last", "a", policy: .replace)
      #expect(holder.isCancelled && !stubborn.executed.isOpen)
      holder.gate.open()
      await stubborn.finished()
      last.gate.open()
      await last.finished()
      #expect(stubborn.executed.isOpen)
    }
  }

  @Test func oneThatHasToAskLaterIsDroppedLater() async {
    for isOwn in [true, false] {
      let first = held("first", "a")
      let dependency = HeldOperation()
      queue.addOperation(dependency)
      let operation: Operation = isOwn ? NoteOperation("dropped", journal) : plain("dropped", journal)
      dependency ==> operation
      #expect(queue.addOperation(operation, exclusive: "a", policy: .drop, in: domain))
      dependency.gate.open()
      await operation.finished()
      #expect(operation.isCancelled && journal.entries.isEmpty)
      first.gate.open()
      await first.finished()
    }
  }

  // MARK: Replace

  @Test func itCancelsThoseBeforeAndWaitsForTheHolder() async {
    let first = held("first", "a")
    await first.begun.opened()
    let second = held("second", "a")
    let foreign = plain("foreign", journal)
    queue.addOperation(foreign, exclusive: "a", in: domain)
    let last = held("last", "a", policy: .replace)
    #expect(first.isCancelled && second.isCancelled && foreign.isCancelled && !last.isCancelled)
    await second.finished()
    await foreign.finished()
    #expect(!first.isFinished && domain.waiting(for: "a") == ["last"])
    first.gate.open()
    await last.begun.opened()
    #expect(first.isFinished && second.state == .finished)
    last.gate.open()
    await last.finished()
    #expect(last.isSuccessful && journal.entries.isEmpty)
  }

  @Test func itLeavesThoseUnderOtherKeysAlone() async {
    let other = held("other", "b")
    let both = held("both", "a", "b")
    let last = held("last", "a", policy: .replace)
    #expect(both.isCancelled && !other.isCancelled)
    await last.begun.opened()
    other.gate.open()
    last.gate.open()
    await last.finished()
    await other.finished()
  }

  @Test func oneThatHasBeenCancelledReplacesNobody() async {
    let holder = held("holder", "a")
    await holder.begun.opened()
    let dependency = AsyncOperation()
    let operation = plain("", journal)
    dependency ==> operation
    operation.cancel()
    queue.addOperation(operation, exclusive: "a", policy: .replace, in: domain)
    await operation.finished()
    await start(dependency)
    for member: Operation in [plain("", journal), NoteOperation("", journal)] {
      let group = GroupOperation()
      group.addOperation(member, exclusive: "a", policy: .replace, in: domain)
      group.cancel()
      queue.addOperation(group)
      await group.finished()
    }
    #expect(!holder.isCancelled && domain.waiting(for: "a").isEmpty)
    holder.gate.open()
    await holder.finished()
  }

  @Test func classicOperationsAreDroppedAndReplaced() async {
    let first = ClassicOperation()
    queue.addOperation(first, exclusive: "a", in: domain)
    await first.begun.opened()
    let dropped = ClassicOperation()
    #expect(!queue.addOperation(dropped, exclusive: "a", policy: .drop, in: domain))
    await dropped.finished()
    let last = ClassicOperation()
    queue.addOperation(last, exclusive: "a", policy: .replace, in: domain)
    #expect(first.isCancelled && !last.begun.isOpen)
    first.gate.open()
    await last.begun.opened()
    last.gate.open()
    await last.finished()
  }

  @Test func theLastOfManyRemains() async {
    let first = held("first", "a")
    await first.begun.opened()
    let others = (0..<20).map { held("\($0)", "a", policy: .replace) }
    #expect(others.dropLast().allSatisfy { $0.isCancelled })
    first.gate.open()
    others.last?.gate.open()
    await others.last?.finished()
    #expect(others.last?.isSuccessful == true && !others.dropLast().contains { $0.begun.isOpen })
  }

  @Test func fromManyThreadsExactlyOneIsNotReplaced() async {
    let operations = (0..<200).map { _ in AsyncOperation() }
    let stopped = OperationQueue.suspended()
    await onThreads(4) { [domain] thread in
      for index in stride(from: thread, to: 200, by: 4) {
        stopped.addOperation(operations[index], exclusive: "a", policy: .replace, in: domain)
      }
    }
    #expect(operations.filter { !$0.isCancelled }.count == 1)
    stopped.isSuspended = false
    for operation in operations { await operation.finished() }
  }
}
