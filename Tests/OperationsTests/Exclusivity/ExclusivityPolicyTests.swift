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
    queue.addOperation(operation.exclusive(keys, policy: policy, in: domain))
    return operation
  }

  // MARK: Drop

  @Test func aDroppedOperationFinishesUnexecutedAndSaysWhy() async throws {
    let first = held("first", "a")
    let second = NoteOperation("second", journal)
    let next = NoteOperation("next", journal)
    second ==> next
    queue.addOperation(next)
    queue.addOperation(second.exclusive("b", "a", policy: .drop, in: domain))
    #expect(second.isFinished && second.isCancelled && second.errors.count == 1)
    let error = try #require(second.errors.first as? OperationError)
    #expect(error.code == .excluded)
    #expect(error.message == "“second” did not run because “first” has the key “a”.")
    await next.finished()
    #expect(journal.entries == ["next"] && domain.holders(of: "b").isEmpty)
    first.gate.open()
    await first.finished()
  }

  @Test func aFullQueueDoesNotKeepADroppedOperationFromFinishing() async {
    let single = OperationQueue.limited(to: 1)
    let first = HeldOperation()
    single.addOperation(first.exclusive("a", in: domain))
    await first.begun.opened()
    await #expect(throws: OperationError(.excluded, "")) {
      try await single.run(AsyncOperation().exclusive("a", policy: .drop, in: domain))
    }
    first.gate.open()
    await first.finished()
  }

  @Test func aKeyThatIsWaitedForIsTaken() async {
    let first = held("first", "a")
    let second = held("second", "a", "b")
    let third = NoteOperation("third", journal)
    queue.addOperation(third.exclusive("b", policy: .drop, in: domain))
    #expect(third.errors.map { "\($0)" } == ["“third” did not run because “second” has the key “b”."])
    first.gate.open()
    second.gate.open()
    await second.finished()
  }

  @Test func anObserverOfTheEndFindsTheKeyFree() async {
    let next = NoteOperation("next", journal)
    let first = NoteOperation("first", journal)
    first.addObserver(
      OperationObserver(didFinish: { [queue, domain] _ in
        queue.addOperation(next.exclusive("a", policy: .drop, in: domain))
      })
    )
    queue.addOperation(first.exclusive("a", in: domain))
    await next.finished()
    #expect(journal.entries == ["first", "next"])
  }

  @Test func withAFreeKeyItExecutes() async {
    for name in ["1", "2"] {
      let operation = NoteOperation(name, journal)
      queue.addOperation(operation.exclusive("a", policy: .drop, in: domain))
      await operation.finished()
    }
    #expect(journal.entries == ["1", "2"])
  }

  @Test func oneThatRequestsLaterIsDroppedLater() async {
    let first = held("first", "a")
    let dependency = HeldOperation()
    queue.addOperation(dependency)
    let operation = NoteOperation("dropped", journal)
    dependency ==> operation
    queue.addOperation(operation.exclusive("a", policy: .drop, in: domain))
    #expect(!operation.isCancelled)
    dependency.gate.open()
    await operation.finished()
    #expect(operation.isCancelled && journal.entries.isEmpty)
    first.gate.open()
    await first.finished()
  }

  /// Even before its observers have been told.
  @Test func aKeyIsFreeForWhoeverHasSeenItsHolderFinish() async {
    for _ in 0..<200 {
      let holder = NoteOperation("", journal)
      queue.addOperation(holder.exclusive("a", in: domain))
      while !holder.isFinished { await Task.yield() }
      #expect(domain.holders(of: "a").isEmpty)
      let next = AsyncOperation()
      queue.addOperation(next.exclusive("a", policy: .drop, in: domain))
      await next.finished()
      #expect(!next.isCancelled)
    }
  }

  @Test func eachCallsPolicyBelongsToItsKeys() async {
    let (first, second) = (held("first", "a"), held("second", "b"))
    await first.begun.opened()
    await second.begun.opened()
    let both = HeldOperation().exclusive("a", in: domain).exclusive("b", policy: .replace, in: domain)
    queue.addOperation(both)
    #expect(!first.isCancelled && second.isCancelled)
    let dropped = AsyncOperation().exclusive("c", in: domain).exclusive("a", policy: .drop, in: domain)
    queue.addOperation(dropped)
    #expect(dropped.isCancelled)
    for operation in [first, second, both] { operation.gate.open() }
    await both.finished()
  }

  // MARK: Replace

  @Test func oneThatHasBeenCancelledReplacesNothing() async {
    let holder = held("holder", "a")
    await holder.begun.opened()
    let group = GroupOperation([NoteOperation("", journal).exclusive("a", policy: .replace, in: domain)])
    group.cancel()
    let operation = NoteOperation("", journal).exclusive("a", policy: .replace, in: domain)
    operation.cancel()
    queue.addOperations([group, operation])
    await group.finished()
    await operation.finished()
    #expect(!holder.isCancelled && domain.waiting(for: "a").isEmpty && journal.entries.isEmpty)
    holder.gate.open()
    await holder.finished()
  }

  @Test func itCancelsThoseBeforeAndWaitsForTheHolder() async {
    let first = held("first", "a")
    await first.begun.opened()
    let second = held("second", "a")
    let foreign = GroupOperation([plain("foreign", journal)])
    queue.addOperation(foreign.exclusive("a", in: domain))
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
        stopped.addOperation(operations[index].exclusive("a", policy: .replace, in: domain))
      }
    }
    #expect(operations.filter { !$0.isCancelled }.count == 1)
    stopped.isSuspended = false
    for operation in operations { await operation.finished() }
  }
}
