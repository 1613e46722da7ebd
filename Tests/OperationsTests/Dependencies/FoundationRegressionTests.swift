import Foundation
import Operations
import OperationsTestSupport
import Soak
import Testing

/// Errors of stock Foundation on Linux in dependencies. Each row of the table in the documentation has a test.
@Suite(.timeLimit(.minutes(5)))
struct FoundationRegressionTests {
  @Test func cancelAllOperationsWithAQueuedDependentNobodyElseHolds() async {
    // Stock: segmentation fault every time.
    for _ in 0..<500 {
      let (queue, held) = (OperationQueue(), HeldOperation())
      await queue.begin(held)
      do {
        let dependent = AsyncOperation()
        held ==> dependent
        queue.addOperation(dependent)
      }
      queue.cancelAllOperations()
      held.gate.open()
      await queue.finished()
    }
  }

  @Test(arguments: [false, true])
  func aDependentThatIsReleasedWithoutEverBeingEnqueued(isPlain: Bool) async {
    // Stock: segmentation fault every time.
    for _ in 0..<500 {
      let dependency = isPlain ? BlockOperation {} : AsyncOperation()
      let dependent: WeakReference<AsyncOperation>
      do { dependent = WeakReference(dependency ==> AsyncOperation()) }
      #expect(dependent.object == nil)
      OperationQueue().addOperations([dependency])
      await dependency.finished()
    }
  }

  @Test(arguments: [false, true])
  func removingUnfinishedDependenciesInAnyOrder(isForeign: Bool) async {
    // Stock: never ready again.
    let queue = OperationQueue()
    let dependencies: [Operation] = (0..<300).map { _ in isForeign ? BlockOperation {} : AsyncOperation() }
    let (dependent, others) = (AsyncOperation(), (0..<300).map { _ in AsyncOperation() })
    dependencies ==> dependent
    dependencies[150] ==> dependent
    dependencies[7] ==> others
    queue.addOperation(dependent)
    for operation in dependencies.shuffled() where operation !== dependencies[42] {
      dependent.removeDependency(operation)
    }
    for other in others.shuffled() { other.removeDependency(dependencies[7]) }
    #expect(dependent.dependencies == [dependencies[42]] && !dependent.isReady)
    #expect(others.allSatisfy { $0.dependencies.isEmpty && $0.isReady })
    queue.addOperation(dependencies[42])
    await dependent.finished()
  }

  @Test func removingADependencyWhileOthersLookAtThem() async {
    let (dependent, dependencies) = (AsyncOperation(), (0..<8).map { _ in AsyncOperation() })
    await onThreads(4) { thread in
      for round in 0..<(isThorough ? 2_000 : 400) {
        if thread > 0 {
          _ = dependent.dependencies.count
          continue
        }
        dependent.addDependency(dependencies[round % 8])
        if round % 8 > 2 { dependent.removeDependency(dependencies[round % 8]) }
      }
    }
    #expect(dependent.dependencies.count == 3)
  }

  private static let races = isThorough ? 4_000 : 100

  @Test(.timeLimit(.minutes(15))) func enqueueingWhileTheDependencyFinishes() async {
    // One thread enqueues the dependents while another wakes them up, in the same order, each in a queue of its own,
    // where nothing else would make Foundation look again.
    for round in 0..<Self.races {
      let (held, dependents) = (HeldOperation(), (0..<100).map { _ in AsyncOperation() })
      let queues = dependents.map { _ in OperationQueue() }
      [held] ==> dependents
      await OperationQueue().begin(held)
      let lead = round % 100
      await onThreads(2) { thread in
        if thread == 0 {
          held.gate.open()
        } else {
          for (dependent, queue) in zip(dependents, queues).suffix(100 - lead) { queue.addOperation(dependent) }
          for (dependent, queue) in zip(dependents, queues).prefix(lead) { queue.addOperations([dependent]) }
        }
      }
      for dependent in dependents { await dependent.finished() }
    }
  }

  @Test(.enabled(if: isThorough), .timeLimit(.minutes(15)))
  func enqueueingStockOperationsWhileTheDependencyFinishes() async {
    // The control of the test above. It counts the operations that Foundation overlooks, and shows that a queue checks
    // its operations when it is resumed.
    var stalls = 0
    for _ in 0..<Self.races {
      let dependencies = (0..<100).map { _ in BlockOperation {} }
      let dependents = (0..<100).map { _ in BlockOperation {} }
      let queues = dependents.map { _ in OperationQueue() }
      for (dependent, dependency) in zip(dependents, dependencies) { dependent.addDependency(dependency) }
      await onThreads(2) { thread in
        if thread == 0 {
          for dependency in dependencies { dependency.start() }
        } else {
          for (dependent, queue) in zip(dependents, queues) { queue.addOperation(dependent) }
        }
      }
      let end = ContinuousClock.now + .milliseconds(200)
      await poll { dependents.allSatisfy(\.isFinished) || ContinuousClock.now > end }
      stalls += dependents.count { !$0.isFinished }
      await poll {
        for (dependent, queue) in zip(dependents, queues) where !dependent.isFinished { queue.isSuspended = false }
        return dependents.allSatisfy(\.isFinished)
      }
    }
    print("Of \(Self.races * 100) stock operations, \(stalls) stalled.")
  }

  @Test func nudgedInASuspendedQueue_itStartsWhenTheQueueIsResumed() async {
    let (queue, journal) = (OperationQueue.suspended(), Journal<String>())
    let dependent = NoteOperation("dependent", journal)
    for round in 0..<10 {
      let dependency = AsyncOperation()
      dependency ==> dependent
      if round == 0 { queue.addOperation(dependent) }
      #expect(!dependent.isReady)
      await start(dependency)
      // Reading it after the gate has been opened makes the package nudge the queue, on another thread.
      #expect(dependent.isReady && journal.entries.isEmpty)
    }
    queue.isSuspended = false
    await dependent.finished()
    #expect(journal.entries == ["dependent"])
  }

  @Test func noDependentRunsBeforeItsDependencyWhenReadinessIsAskedFromManySides() async {
    for _ in 0..<1000 {
      let (held, order) = (HeldOperation(), Journal<Bool>())
      let dependent = AsyncBlockOperation { operation in
        order.write(held.isFinished)
        operation.finish()
      }
      held ==> dependent
      let queue = OperationQueue()
      await queue.begin(held)
      await onThreads(3) { thread in
        // By Foundation's own method, which checks the readiness itself.
        if thread == 0 { queue.addOperation(dependent as Operation) } else { _ = dependent.isReady }
      }
      // Anything else that finishes in the queue makes Foundation look at the dependent once more.
      try? await queue.run(AsyncOperation())
      await dependent.finished(opening: held.gate)
      #expect(order.entries == [true])
    }
  }

  @Test func cancellingManyThatWait() async {
    // Stock: 15 seconds for 10,000.
    let (first, members) = (HeldOperation(), (0..<10_000).map { _ in AsyncOperation() })
    let group = GroupOperation(chain([first] + members))
    await OperationQueue().add(group, until: first.begun)
    group.cancel()
    await group.finished(opening: first.gate)
    #expect(members.allSatisfy { $0.isFinished && $0.isCancelled })
  }
}
