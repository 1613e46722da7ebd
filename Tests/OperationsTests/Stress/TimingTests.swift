import Foundation
import Operations
import OperationsTestSupport
import Soak
import Testing

/// Two things at the same moment, over and over: each of these has crashed, hung or deadlocked once.
@Suite(.timeLimit(.minutes(5)))
struct TimingTests {
  private let rounds = isThorough ? 1_500 : 400

  private func atOnce(_ first: @escaping @Sendable () -> Void, _ second: @escaping @Sendable () -> Void) async {
    await onThreads(2) { thread in if thread == 0 { first() } else { second() } }
  }

  @Test func gateOpenedWhileItsOperationJoinsARunningGroup_losesNoWakeUp() async {
    let held = HeldOperation()
    let group = GroupOperation([held])
    OperationQueue().addOperation(group)
    await held.begun.opened()
    for _ in 0..<rounds {
      let (dependency, member) = (AsyncOperation(), AsyncOperation())
      dependency ==> member
      #expect(!member.isReady)
      await atOnce({ dependency.start() }, { group.addOperation(member) })
      await member.finished()
    }
    held.gate.open()
    await group.finished()
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

  @Test func dependencyEndsWhileItsDependentIsEnqueuedAndRead_dependentRuns() async {
    for _ in 0..<rounds {
      let (dependency, operation, queue) = (AsyncOperation(), AsyncOperation(), OperationQueue())
      dependency ==> operation
      await onThreads(3) { thread in
        switch thread {
        case 0: dependency.start()
        case 1: queue.addOperation(operation)
        default: _ = operation.isReady
        }
      }
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

  @Test(arguments: OpenGroupTests.Closing.allCases)
  func openGroupClosedWhileItsLastMemberFinishes_finishes(_ closing: OpenGroupTests.Closing) async {
    for _ in 0..<rounds / 5 {
      let (group, member) = (GroupOperation(), HeldOperation())
      group.staysOpen = true
      group.addOperation(member)
      OperationQueue().addOperation(group)
      await member.begun.opened()
      await atOnce({ member.gate.open() }, { closing.close(group) })
      await group.finished()
    }
  }

  @Test func graphsThatShareADependencyAreAddedAtOnce_allFinish() async {
    for _ in 0..<rounds / 5 {
      let (login, queue) = (AsyncOperation(), OperationQueue())
      let last = (0..<4).map { _ in login ==> AsyncOperation() }
      await onThreads(4) { thread in queue.addGraph(endingIn: last[thread]) }
      for operation in last { await operation.finished() }
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
        _ = dependents.withLock { dependents in
          defer { dependents = [] }
          return dependents
        }
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
      OperationQueue().addOperation(group)
      await held.begun.opened()
      await atOnce({ group.cancel() }, { group.addOperations((0..<40).map { _ in GroupOperation() }) })
      held.gate.open()
      await group.finished()
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
