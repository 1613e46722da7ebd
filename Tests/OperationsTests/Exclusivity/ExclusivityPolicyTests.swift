import Foundation
import Operations
import OperationsTestSupport
import Testing

/// What an operation does that finds its key taken.
@Suite(.timeLimit(.minutes(1)))
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
