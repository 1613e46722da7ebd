import Foundation
import Operations

/// Events of a scheduler, against what stock Foundation and Dispatch have for it.
enum SchedulerBenchmarks {
  private static let events = 500_000
  private static let operations = 50_000
  private static let roundTrips = 5_000
  private static let producers = 4

  static let all: [Benchmark] = [
    Benchmark(
      name: "event",
      unit: "event",
      numerator: operationEvents,
      denominator: schedulerEvents,
      target: .atLeast(25, aim: 25)
    ),
    Benchmark(
      name: "event-dispatch",
      unit: "event",
      numerator: dispatchEvents,
      denominator: schedulerEvents,
      target: .atLeast(1.5, aim: 2.5)
    ),
    Benchmark(
      name: "event-producers",
      unit: "event, from \(producers) threads",
      numerator: fromProducers("serial DispatchQueue") { DispatchQueue(label: "serial").post },
      denominator: fromProducers("SerialScheduler") { SerialScheduler(name: "serial").post },
      target: .atLeast(1, aim: 1)
    ),
    Benchmark(
      name: "event-wait",
      unit: "event, awaited before the next",
      numerator: roundTrips("OperationQueue of one", operationQueue().post),
      denominator: roundTrips("SerialScheduler", SerialScheduler(name: "serial").post),
      target: .atLeast(0.9, aim: 0.9)
    ),
    Benchmark(
      name: "event-wait-dispatch",
      unit: "event, awaited before the next",
      numerator: roundTrips("serial DispatchQueue", DispatchQueue(label: "serial").post),
      denominator: roundTrips("SerialScheduler", SerialScheduler(name: "serial").post),
      target: .atLeast(0.7, aim: 0.7)
    ),
    Benchmark(
      name: "wait",
      unit: "blocking wait",
      numerator: roundTrips("serial DispatchQueue", DispatchQueue(label: "serial").post),
      denominator: waits,
      target: .none
    ),
    Benchmark(
      name: "actor",
      unit: "await actor.method()",
      numerator: actorCalls("ScheduledActor") { ScheduledCounter(SerialScheduler(name: "actor")) },
      denominator: actorCalls("default actor") { DefaultCounter() },
      target: .none
    ),
    Benchmark(
      name: "actor-dispatch",
      unit: "await actor.method()",
      numerator: actorCalls("ScheduledActor") { ScheduledCounter(SerialScheduler(name: "actor")) },
      denominator: actorCalls("actor on a serial DispatchQueue") { DispatchCounter() },
      target: .none
    ),
    Benchmark(
      name: "confined",
      unit: "append to an array of 100,000",
      numerator: ConfinedBenchmark.confined,
      denominator: ConfinedBenchmark.plain,
      target: .atMost(10)
    ),
  ]

  private typealias Post = (@escaping @Sendable () -> Void) -> Void

  private static func operationQueue() -> OperationQueue {
    let queue = OperationQueue()
    queue.maxConcurrentOperationCount = 1
    return queue
  }

  private static let operationEvents = fromOne("OperationQueue of one", operations) { operationQueue().post }
  private static let schedulerEvents = fromOne("SerialScheduler", events) { SerialScheduler(name: "serial").post }
  private static let dispatchEvents = fromOne("serial DispatchQueue", events) { DispatchQueue(label: "serial").post }

  private static func fromOne(_ name: String, _ count: Int, _ make: @escaping @Sendable () -> Post) -> Workload {
    Workload(name: name, units: count) {
      Lifetime.run { lifetime in
        let post = make()
        for index in 0..<count {
          let lifetime = lifetime(index)
          post { withExtendedLifetime(lifetime) {} }
        }
      }
    }
  }

  private static func fromProducers(_ name: String, _ make: @escaping @Sendable () -> Post) -> Workload {
    Workload(name: "\(name), \(producers) producers", units: events) {
      let end = DispatchGroup()
      nonisolated(unsafe) let post = make()
      DispatchQueue.concurrentPerform(iterations: producers) { _ in
        let lifetime = Lifetime(end)
        for _ in 0..<events / producers { unsafe post { withExtendedLifetime(lifetime) {} } }
      }
      end.wait()
    }
  }

  private static func roundTrips(_ name: String, _ post: @escaping Post) -> Workload {
    nonisolated(unsafe) let post = post
    return Workload(name: "\(name), one at a time", units: roundTrips) {
      let done = DispatchSemaphore(value: 0)
      for _ in 0..<roundTrips {
        unsafe post { done.signal() }
        done.wait()
      }
    }
  }

  private static let waits = Workload(name: "wait { }, SerialScheduler", units: roundTrips) {
    let scheduler = SerialScheduler(name: "serial")
    for _ in 0..<roundTrips { try? scheduler.wait {} }
  }

  private static func actorCalls(_ name: String, _ make: @escaping @Sendable () -> any Counter) -> Workload {
    Workload(name: "\(name), one at a time", units: roundTrips) {
      let end = DispatchSemaphore(value: 0)
      Task {
        let counter = make()
        for _ in 0..<roundTrips { await counter.count() }
        end.signal()
      }
      end.wait()
    }
  }
}

extension DispatchQueue {
  fileprivate func post(_ event: @escaping @Sendable () -> Void) { async(execute: event) }
}

extension OperationQueue {
  fileprivate func post(_ event: @escaping @Sendable () -> Void) { addOperation(event) }
}

extension SerialScheduler {
  fileprivate func post(_ event: @escaping @Sendable () -> Void) { schedule(event) }
}

private protocol Counter: Actor {
  func count()
}

private actor DefaultCounter: Counter {
  private var value = 0
  func count() { value += 1 }
}

/// What one writes without the package.
private final class DispatchExecutor: SerialExecutor {
  private let queue = DispatchQueue(label: "actor")

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { unsafe job.runSynchronously(on: self.asUnownedSerialExecutor()) }
  }
}

private actor DispatchCounter: Counter {
  private let executor = DispatchExecutor()
  private var value = 0
  nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe executor.asUnownedSerialExecutor() }
  func count() { value += 1 }
}

private actor ScheduledCounter: Counter, ScheduledActor {
  nonisolated let scheduler: SerialScheduler
  private var value = 0
  init(_ scheduler: SerialScheduler) { self.scheduler = scheduler }
  func count() { value += 1 }
}
