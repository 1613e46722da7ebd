import Foundation
import Operations
import OperationsTestSupport
import Synchronization

/// How the time of groups, dependencies, schedulers, tracers and reports grows.
enum GrowthBenchmarks {
  private struct GrowthError: Error {}

  static let all: [Benchmark] = [
    .growth("group-new-dependencies", "members of a waiting group that gain a dependency", of: 1000) { count in
      let outside = AsyncOperation()
      let members = (0..<count).map { _ in AsyncOperation() }
      outside ==> members
      run(GroupOperation(members)) {
        chain(members)
        OperationQueue().addOperation(outside)
      }
    },
    .growth("group-pairs", "pairs of members that wait for a member group of as many", of: 500) { count in
      let outside = AsyncOperation()
      let inside = (0..<count).map { _ in AsyncOperation() }
      outside ==> inside
      let nested = GroupOperation(inside)
      let group = GroupOperation([nested])
      run(group) {
        for _ in 0..<count {
          let (first, second) = (AsyncOperation(), AsyncOperation())
          nested ==> first ==> second
          group.addOperations([first, second])
        }
        OperationQueue().addOperation(outside)
      }
    },
    .growth("group-nesting", "groups nested from outside in", of: 2000) { count in
      let outermost = GroupOperation()
      var group = outermost
      for _ in 0..<count {
        let inner = GroupOperation()
        group.addOperation(inner)
        group = inner
      }
      withExtendedLifetime(outermost) {}
    },
    .growth("group-churn", "members that pass through a group in which one stays", of: 20_000) { count in
      let staying = AsyncBlockOperation { _ in }
      let group = GroupOperation([staying])
      run(group) {
        for index in 0..<count {
          let member = AsyncBlockOperation { $0.finish() }
          group.addOperation(member)
          if index.isMultiple(of: 100) { while group.operations.count > 200 { Thread.sleep(forTimeInterval: 0.0001) } }
        }
        staying.finish()
      }
    },
    .growth("group-flows", "members of a group with a slot, ten in a flow", of: 25_000) { count in
      let members = (0..<count).map { index in
        let member = AsyncOperation()
        member.flow = ExclusivityKey(index % (count / 10))
        return member
      }
      run(GroupOperation(members, maxConcurrentOperationCount: 1))
    },
    .growth("group-bounds", "tasks that add a member each, below a number of their own", of: 500) { count in
      let held = AsyncBlockOperation { _ in }
      let group = GroupOperation([held])
      group.staysOpen = true
      run(group) {
        let added = startTasks(count) { await group.addOperation(AsyncOperation(), whenBelow: $0 + 1) }
        held.finish()
        added.wait()
        group.staysOpen = false
      }
    },
    .growth("cancel-waiting", "nested groups around a member that waits and is cancelled", of: 500) { count in
      let (held, waiting) = (AsyncBlockOperation { _ in }, AsyncOperation())
      held ==> waiting
      var group = GroupOperation([held, waiting])
      for _ in 0..<count { group = GroupOperation([group]) }
      run(group, whenBegun: [held]) {
        group.cancelWaitingOperations()
        held.finish()
      }
    },
    .growth("results", "results of a sequence, in its order and one behind the others", of: 5000) { count in
      // All results but the first wait until it is yielded.
      let queue = OperationQueue()
      let (elements, continuation) = AsyncStream.makeStream(of: Int.self)
      for index in 0..<count { continuation.yield(index) }
      continuation.finish()
      startTasks(1) { _ in
        let (stream, gate) = AsyncStream.makeStream(of: Void.self)
        let results = queue.results(of: elements, atMost: count, ordered: true) { index in
          if index == 0 { for await _ in stream {} }
          if index == count - 1 { gate.finish() }
        }
        for try await _ in results {}
      }
      .wait()
    },
    .growth("drained", "tasks that wait until a group has drained", of: 5000) { count in
      let held = AsyncBlockOperation { _ in }
      let group = GroupOperation([held])
      run(group) {
        let drained = startTasks(count) { _ in await group.drained() }
        held.finish()
        drained.wait()
      }
    },
    .growth("group-chain-from-end", "members of a chain, added from its end", of: 2000) { count in
      let held = AsyncBlockOperation { _ in }
      let members = chain([held] + (0..<count).map { _ in AsyncOperation() }).dropFirst()
      let group = GroupOperation([held])
      run(group) {
        for member in members.reversed() { group.addOperation(member) }
        held.finish()
      }
    },
    // A ratio, because Foundation walks through all waiting operations of a queue whenever one is added, becomes ready or
    // finishes. From 300 to 1,200 operations, its time grows ninefold.
    Benchmark(
      "run-behind-chain",
      of: "round of 1200 operations, each run behind a chain of as many in a group, or stock ones behind one",
      Workload(name: "run", units: 1) { runBehindChain(1200) },
      over: Workload(name: "stock", units: 1) { addStock(1200) },
      .atMost(3)
    ),
    .growth("group-plain", "plain members, each waiting for the one before", of: 500) { count in
      let outside = AsyncOperation()
      let members = (0..<count).map { _ in BlockOperation {} }
      outside ==> members[0]
      chain(members)
      run(GroupOperation(members)) { OperationQueue().addOperation(outside) }
    },
    .growth("progress-updates", "streams of the progress of one group", of: 500) { count in
      let group = GroupOperation((0..<10).map { _ in AsyncOperation() })
      let updates = (0..<count).map { _ in group.progressUpdates }
      let ended = startTasks(count) { for await _ in updates[$0] {} }
      run(group)
      ended.wait()
    },
    .growth("repetitions", "iterations of a repetition", of: 10_000) { count in
      run(RepeatOperation { $0 <= count ? AsyncOperation() : nil })
    },
    .growth("group-timeouts", "nested groups, each with a timeout", of: 1000) { count in
      var group = GroupOperation([AsyncOperation()])
      for _ in 0..<count {
        group.timeout = .seconds(3600)
        group = GroupOperation([group])
      }
      run(group)
    },
    .growth("queue-tracers", "tracers that follow a queue each, and operations in these queues", of: 500) { count in
      let queues = (0..<count).map { _ in OperationQueue() }
      let tracers = queues.map { queue in
        let tracer = OperationTracer()
        tracer.trace(queue)
        return tracer
      }
      for queue in queues { queue.addOperation(AsyncOperation()) }
      for queue in queues { queue.waitUntilAllOperationsAreFinished() }
      withExtendedLifetime(tracers) {}
    },
    .growth("violations", "violations that a handler receives", of: 10_000) { count in
      let scheduler = SerialScheduler(name: "home")
      SerialScheduler.violationHandler = { _ in }
      for _ in 0..<count { scheduler.preconditionIsCurrent() }
      SerialScheduler.violationHandler = nil
    },
    .growth("clock-sleepers", "tasks that wait for the sleepers of a manual clock", of: 1000) { count in
      let clock = ManualClock()
      let ended = startTasks(count) { await clock.waitForSleepers($0 + 1) }
      let delays = (0..<count).map { _ in DelayOperation(.seconds(1)) }
      for delay in delays {
        delay.clock = clock
        delay.start()
      }
      ended.wait()
      clock.advance(by: .seconds(1))
    },
    .growth("delays-descending", "delayed events, each due before the one before it", of: 10_000) { count in
      let scheduler = SerialScheduler(name: "later")
      for index in 0..<count { scheduler.schedule(after: .seconds(100_000) - .milliseconds(index)) {} }
      scheduler.shutDown(.discard)
    },
    .growth("delays-cancelled", "delayed events, cancelled in the order of their times", of: 10_000) { count in
      let scheduler = SerialScheduler(name: "later")
      let events = (0..<count).map { scheduler.schedule(after: .seconds(100_000) + .milliseconds($0)) {} }
      for event in events { event.cancel() }
    },
    .growth("waits-cancelled", "waits for one operation that are cancelled before its end", of: 2000) { count in
      let (own, plain, ended) = (AsyncOperation(), BlockOperation {}, DispatchSemaphore(value: 0))
      let waits = (0..<count).map { index in
        Task {
          await (index.isMultiple(of: 100) ? plain : own).finished()
          ended.signal()
        }
      }
      for wait in waits { wait.cancel() }
      for _ in waits { ended.wait() }
      run(own)
      plain.start()
    },
    .growth("stall-key", "operations that share a key and as many that wait for it, reported", of: 250) { count in
      let domain = ExclusivityDomain()
      let holders = (0..<count).map { _ in AsyncBlockOperation { _ in }.shared("key", in: domain) }
      let waiters = (0..<count).map { _ in AsyncOperation().exclusive("key", in: domain) }
      report(holders + waiters)
    },
    .growth("stall-throttle", "operations that wait for the window of a throttle, reported", of: 500) { count in
      let domain = ExclusivityDomain()
      let first = AsyncBlockOperation { _ in }.throttled("key", to: 1, per: .seconds(1000), in: domain)
      let others = (0..<count).map { _ in AsyncOperation().throttled("key", to: 1, per: .seconds(1000), in: domain) }
      report([first] + others)
    },
    .growth("group-expiring", "members that may not wait, for half of which there is a slot", of: 1000) { count in
      let members = (0..<count).map { _ in notWaiting(AsyncOperation()) }
      let group = GroupOperation([], maxConcurrentOperationCount: count / 2)
      group.staysOpen = true
      run(group) {
        // No member starts before the call has added both.
        group.addOperations([Probe { [unowned group] in group.addOperations(members) }, AsyncOperation()])
        group.staysOpen = false
      }
    },
    .growth("queue-expiring", "operations that may not wait, added at once to a full queue", of: 500) { count in
      let (held, queue) = (AsyncBlockOperation { _ in }, OperationQueue.limited(to: 1))
      queue.addOperation(held)
      queue.addOperations((0..<count).map { _ in notWaiting(AsyncOperation()) })
      held.finish()
      queue.waitUntilAllOperationsAreFinished()
    },
    .growth("nested-failure", "nested groups around a member that fails", of: 1000) { count in
      let failing = ResultOperation<Void> { throw GrowthError() }
      var group = GroupOperation([failing])
      for _ in 0..<count { group = GroupOperation([group]) }
      run(group)
    },
    .growth("nested-innermost", "nested groups, each with a member that waits for the innermost one", of: 250) {
      count in
      let innermost = AsyncOperation()
      var group = GroupOperation([innermost])
      for _ in 0..<count { group = GroupOperation([group, innermost ==> AsyncOperation()]) }
      run(group)
    },
    .growth("nested-progress", "nested groups whose progress is followed", of: 2000) { count in
      Lifetime.run { lifetime in
        var group = GroupOperation([Workload.asyncBlock(lifetime(0))])
        for _ in 0..<count { group = GroupOperation([group]) }
        let progress = group.progress
        run(group)
        if progress.fractionCompleted != 1 { fatalError("The progress is incomplete.") }
      }
    },
  ]

  /// Calls a closure while it is added.
  private final class Probe: AsyncOperation, @unchecked Sendable {
    private let body: Mutex<(() -> Void)?>

    init(_ body: sending @escaping () -> Void) { self.body = Mutex(body) }

    override var queuePriority: QueuePriority {
      get {
        body.withLock { $0.take() }?()
        return .normal
      }
      set {}
    }
  }

  private static func notWaiting<O: AsyncOperation>(_ operation: O) -> O {
    operation.waitLimit = .zero
    return operation
  }

  private static func runBehindChain(_ count: Int) {
    let held = AsyncBlockOperation { _ in }
    let members = chain([held] + (0..<count).map { _ in AsyncOperation() })
    run(GroupOperation(members)) {
      let queue = OperationQueue()
      let dependents = (0..<count).map { _ in members[count] ==> AsyncOperation() }
      let finished = startTasks(count) { try await queue.run(dependents[$0]) }
      while queue.operationCount < count { Thread.sleep(forTimeInterval: 0.001) }
      held.finish()
      finished.wait()
    }
  }

  private static func addStock(_ count: Int) {
    let (end, queue) = (DispatchSemaphore(value: 0), OperationQueue())
    let held = BlockOperation { end.wait() }
    OperationQueue().addOperation(held)
    for _ in 0..<count {
      let dependent = BlockOperation {}
      dependent.addDependency(held)
      queue.addOperation(dependent)
    }
    end.signal()
    queue.waitUntilAllOperationsAreFinished()
  }

  /// Reports a running group repeatedly, so that the reports take most of the time.
  private static func report(_ members: [AsyncOperation]) {
    let group = GroupOperation(members)
    run(group, whenBegun: members.filter { $0 is AsyncBlockOperation }) {
      for _ in 0..<10 { _ = group.stallReport() }
      group.cancel()
      for member in members where member.isExecuting { member.finish() }
    }
  }
}
