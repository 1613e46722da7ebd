import Foundation
import Operations
import OperationsTestSupport
import Soak
import Testing

/// Two things at the same moment, over and over: most of these have crashed, hung or deadlocked once.
@Suite(.timeLimit(.minutes(5)))
struct TimingTests {
  private let rounds = isThorough ? 1_500 : 400

  private func atOnce(_ first: @escaping @Sendable () -> Void, _ second: @escaping @Sendable () -> Void) async {
    await onThreads(2) { thread in if thread == 0 { first() } else { second() } }
  }

  @Test func gateOpenedWhileItsOperationJoinsARunningGroup_losesNoWakeUp() async {
    let held = HeldOperation()
    let group = GroupOperation([held])
    await OperationQueue().add(group, until: held.begun)
    for _ in 0..<rounds {
      let (dependency, member) = (AsyncOperation(), AsyncOperation())
      dependency ==> member
      #expect(!member.isReady)
      await atOnce({ dependency.start() }, { group.addOperation(member) })
      await member.finished()
    }
    await group.finished(opening: held.gate)
  }

  @Test func dependencyOfAReadyMemberEndsWhileItsGroupIsResumed_memberRuns() async {
    for _ in 0..<rounds {
      let (dependency, member) = (AsyncOperation(), AsyncOperation())
      let group = GroupOperation([member])
      group.isSuspended = true
      OperationQueue().addOperation(group)
      #expect(member.isReady)
      dependency ==> member
      await atOnce({ dependency.start() }, { group.isSuspended = false })
      await group.finished()
    }
  }

  @Test(arguments: [false, true])
  func waitingOperationCancelledWhileItIsEnqueued_finishes(byFoundation: Bool) async {
    let never = AsyncOperation()
    for _ in 0..<rounds / 2 {
      let (operation, queue) = (AsyncOperation(), OperationQueue())
      never ==> operation
      let add = { @Sendable in byFoundation ? queue.addByFoundation(operation) : queue.addOperation(operation) }
      await atOnce({ operation.cancel() }, add)
      await operation.finished()
    }
  }

  @Test func dependencyRemovedWhileItFinishes_dependentRuns() async {
    for _ in 0..<rounds {
      let (dependency, operation) = (AsyncOperation(), AsyncOperation())
      dependency ==> operation
      OperationQueue().addOperation(operation)
      await atOnce({ dependency.start() }, { operation.removeDependency(dependency) })
      await operation.finished()
    }
  }

  @Test(arguments: [false, true])
  func dependentAddedWhileItsDependencyFails_isCancelled(byCancellation: Bool) async {
    for _ in 0..<rounds {
      let (first, dependent, last) = (HeldOperation(), AsyncOperation(), AsyncOperation())
      first ==> dependent ==> last
      let group = GroupOperation([first])
      (group.errorPolicy, group.staysOpen) = (.cancelDependents, true)
      await OperationQueue().add(group, until: first.begun)
      if byCancellation { first.cancel() }
      await atOnce({ first.finish(with: TestError("failed")) }, { group.addOperations([last, dependent]) })
      for operation in [dependent, last] { await operation.finished() }
      #expect(dependent.isCancelled && last.isCancelled)
      await group.ended()
    }
  }

  @Test(arguments: [false, true]) func graphsThatShareOperationsAreAddedAtOnce_allFinish(toGroups: Bool) async {
    for _ in 0..<rounds / 5 {
      let (queue, journal) = (OperationQueue(), Journal<String>())
      let shared = AsyncOperation() ==> NoteOperation("shared", journal)
      let last = (0..<4).map { _ in shared ==> AsyncOperation() }
      await onThreads(4) { thread in
        if toGroups { return GroupOperation().started().addGraph(endingIn: last[thread]) }
        queue.addGraph(endingIn: last[thread])
      }
      for operation in last { await operation.finished() }
      #expect(journal.entries == ["shared"])
    }
  }

  @Test func dependentThatReadsItsDependencyWhenItIsReleased_doesNotDeadlock() async {
    final class Asking: AsyncOperation, @unchecked Sendable {
      let dependency: AsyncOperation
      init(_ dependency: AsyncOperation) { self.dependency = dependency }
      deinit { _ = dependency.name }
    }
    let dependency = AsyncOperation()
    for _ in 0..<rounds {
      let dependents = Locked((0..<4).map { _ in dependency ==> Asking(dependency) })
      let other = AsyncOperation()
      dependency ==> other
      await atOnce {
        // The first is released by itself, the others together, and all after the lock.
        dependents.withLock { $0.popLast() }.map { withExtendedLifetime($0) {} }
        _ = dependents.withLock { exchange(&$0, with: []) }
      } _: {
        other.removeDependency(dependency)
      }
    }
  }

  @Test(arguments: [false, true])
  func dependencyOfAPlainMemberEndsWhileItsGroupIsCancelled_groupFinishes(isCancelledBefore: Bool) async {
    for _ in 0..<rounds {
      let (dependency, member) = (BlockOperation {}, BlockOperation {})
      dependency ==> member
      let group = GroupOperation([member])
      await OperationQueue().begin(group)
      if isCancelledBefore { member.cancel() }
      await atOnce({ dependency.start() }, { group.cancel() })
      await group.finished()
    }
  }

  @Test func groupsAddedWhileTheirGroupIsCancelled_keepItsProgressBelowItsTotal() async {
    for _ in 0..<rounds / 10 {
      let held = HeldOperation()
      let group = GroupOperation([held])
      let progress = group.progress
      await OperationQueue().add(group, until: held.begun)
      await atOnce({ group.cancel() }, { group.addOperations((0..<40).map { _ in GroupOperation() }) })
      await group.finished(opening: held.gate)
      #expect(progress.completedUnitCount <= progress.totalUnitCount)
    }
  }

  @Test func plainDependencyAddedAndRemovedAtOnce_doesNotCrash() async {
    for _ in 0..<rounds {
      let plain = BlockOperation {}
      do {
        let operation = AsyncOperation()
        await atOnce({ operation.addDependency(plain) }, { operation.removeDependency(plain) })
      }
      await start(plain)
    }
  }
}
