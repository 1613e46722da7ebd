import Foundation
import Operations
import OperationsTestSupport
import Testing

/// Two things at the same moment, over and over: each of these has crashed, hung or deadlocked once.
@Suite(.timeLimit(.minutes(5)))
struct TimingTests {
  private let rounds = 1500

  @Test func aGateIsOpenedWhileItsOperationIsAddedToARunningGroup() async {
    let held = HeldOperation()
    let group = GroupOperation([held])
    OperationQueue().addOperation(group)
    await held.begun.opened()
    for _ in 0..<rounds {
      let (dependency, member) = (AsyncOperation(), AsyncOperation())
      dependency ==> member
      #expect(!member.isReady)
      await onThreads(2) { thread in if thread == 0 { dependency.start() } else { group.addOperation(member) } }
      await member.finished()
    }
    held.gate.open()
    await group.finished()
  }

  @Test func aDependencyOfAReadyMemberEndsWhileItsGroupIsResumed() async {
    for _ in 0..<rounds {
      let (dependency, member) = (AsyncOperation(), AsyncOperation())
      let group = GroupOperation([member])
      group.isSuspended = true
      OperationQueue().addOperation(group)
      #expect(member.isReady)
      dependency ==> member
      await onThreads(2) { thread in if thread == 0 { dependency.start() } else { group.isSuspended = false } }
      await group.finished()
    }
  }

  @Test func aWaitingOperationIsCancelledWhileItIsEnqueued() async {
    let never = AsyncOperation()
    for round in 0..<rounds {
      let operation = AsyncOperation()
      never ==> operation
      let queue = OperationQueue()
      await onThreads(2) { thread in
        if thread == 0 {
          operation.cancel()
        } else if round.isMultiple(of: 2) {
          queue.addOperation(operation)
        } else {
          queue.addOperation(operation as Operation)
        }
      }
      await operation.finished()
    }
  }

  @Test func theLastDependencyEndsWhileItsDependentIsEnqueuedAndAsked() async {
    for round in 0..<rounds {
      let (dependency, operation) = (AsyncOperation(), AsyncOperation())
      dependency ==> operation
      if round.isMultiple(of: 3) { #expect(!operation.isReady) }
      let queue = OperationQueue()
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

  @Test func graphsThatShareADependencyAreAddedAtOnce() async {
    for _ in 0..<rounds / 5 {
      let login = AsyncOperation().named("login")
      let queue = OperationQueue()
      let last = (0..<4).map { _ in
        let operation = AsyncOperation()
        login ==> operation
        return operation
      }
      await onThreads(4) { thread in queue.addGraph(endingIn: last[thread]) }
      for operation in last { await operation.finished() }
    }
  }

  @Test func dependentsThatAskTheirDependencyWhenTheyAreReleased() async {
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
      await onThreads(2) { thread in
        if thread == 0 {
          dependents.withLock { dependents in dependents.popLast() }.map { withExtendedLifetime($0) {} }
          _ = dependents.withLock { dependents in
            defer { dependents = [] }
            return dependents
          }
        } else {
          other.removeDependency(dependency)
        }
      }
    }
  }

  @Test func whatAPlainMemberWaitsForEndsWhileItsGroupIsCancelled() async {
    for _ in 0..<rounds {
      let dependency = BlockOperation {}
      let member = BlockOperation {}
      dependency ==> member
      let group = GroupOperation([member])
      OperationQueue().addOperation(group)
      await onThreads(2) { thread in if thread == 0 { dependency.start() } else { group.cancel() } }
      await group.finished()
    }
  }

  @Test func nestedGroupsEndWhileTheyAreAddedToACancelledOne() async {
    for _ in 0..<rounds / 10 {
      let held = HeldOperation()
      let group = GroupOperation([held])
      let progress = group.progress
      OperationQueue().addOperation(group)
      await held.begun.opened()
      await onThreads(2) { thread in
        if thread == 0 { group.cancel() } else { group.addOperations((0..<40).map { _ in GroupOperation() }) }
      }
      held.gate.open()
      await group.finished()
      #expect(progress.completedUnitCount <= progress.totalUnitCount)
    }
  }

  @Test func aPlainDependencyIsAddedAndRemovedAtOnce() async {
    for _ in 0..<rounds {
      let plain = BlockOperation {}
      do {
        let operation = AsyncOperation()
        await onThreads(2) { thread in
          if thread == 0 { operation.addDependency(plain) } else { operation.removeDependency(plain) }
        }
      }
      await start(plain)
    }
  }
}
