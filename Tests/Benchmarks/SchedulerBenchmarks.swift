import Foundation
import Operations

/// Events of a scheduler, compared with stock Foundation and Dispatch.
enum SchedulerBenchmarks {
  private static let events = 500_000
  private static let operations = 50_000
  private static let roundTrips = 5_000
  private static let producers = 4

  private static let fromThreads = "event, from \(producers) threads"
  private static let awaited = "event, awaited before the next"

  static let all: [Benchmark] = [
    Benchmark("event", of: "event", operationEvents, over: schedulerEvents, .atLeast(25, aim: 25)),
    Benchmark("event-dispatch", of: "event", dispatchEvents, over: schedulerEvents, .atLeast(1.5, aim: 2.5)),
    Benchmark("event-producers", of: fromThreads, dispatchProducers, over: schedulerProducers, .atLeast(1, aim: 1)),
    Benchmark("event-wait", of: awaited, operationTrips, over: schedulerTrips, .atLeast(0.9, aim: 0.9)),
    Benchmark("event-wait-dispatch", of: awaited, dispatchTrips, over: schedulerTrips, .atLeast(0.7, aim: 0.7)),
    Benchmark("actor", of: "await actor.method()", scheduledCalls, over: defaultCalls),
    Benchmark("confined", of: "append to an array of 100,000", confinedArray, over: plainArray, .atMost(10)),
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

  private static let schedulerProducers = fromProducers("SerialScheduler") { SerialScheduler(name: "serial").post }
  private static let dispatchProducers = fromProducers("serial DispatchQueue") { DispatchQueue(label: "serial").post }

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

  private static let operationTrips = roundTrips("OperationQueue of one", operationQueue().post)
  private static let schedulerTrips = roundTrips("SerialScheduler", SerialScheduler(name: "serial").post)
  private static let dispatchTrips = roundTrips("serial DispatchQueue", DispatchQueue(label: "serial").post)

  private static let defaultCalls = actorCalls("default actor") { DefaultCounter() }
  private static let scheduledCalls = actorCalls("ScheduledActor") { ScheduledCounter(SerialScheduler(name: "actor")) }

  private static func actorCalls(_ name: String, _ make: @escaping @Sendable () -> any Counter) -> Workload {
    .awaiting("\(name), one at a time", units: roundTrips) {
      let counter = make()
      for _ in 0..<roundTrips { await counter.count() }
    }
  }

  // MARK: An array that is checked at every access, and changed in place

  private static let appends = 100_000

  private static let confinedArray = filling("@Confined array") { list in
    for number in 0..<appends { list.confined.append(number) }
  }

  private static let plainArray = filling("plain array") { list in
    for number in 0..<appends { list.plain.append(number) }
  }

  private static func filling(_ name: String, _ fill: @escaping @Sendable (List) -> Void) -> Workload {
    Workload(name: name, units: appends) {
      let scheduler = SerialScheduler(name: "confined")
      let end = DispatchSemaphore(value: 0)
      scheduler.schedule {
        fill(List(scheduler))
        end.signal()
      }
      end.wait()
    }
  }
}

private final class List: Schedulable, @unchecked Sendable {
  let scheduler: SerialScheduler
  @Confined var confined: [Int] = []
  var plain: [Int] = []

  init(_ scheduler: SerialScheduler) { self.scheduler = scheduler }
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

private actor ScheduledCounter: Counter, ScheduledActor {
  nonisolated let scheduler: SerialScheduler
  private var value = 0
  init(_ scheduler: SerialScheduler) { self.scheduler = scheduler }
  func count() { value += 1 }
}
