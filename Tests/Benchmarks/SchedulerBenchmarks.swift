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
    Benchmark("event", of: "event", fromOne(.stock, operations), over: fromOne(.scheduler), .atLeast(25, aim: 25)),
    Benchmark("event-dispatch", of: "event", fromOne(.dispatch), over: fromOne(.scheduler), .atLeast(1.5, aim: 2.5)),
    Benchmark("event-producers", of: fromThreads, fromMany(.dispatch), over: fromMany(.scheduler), .atLeast(1, aim: 1)),
    Benchmark("event-main", of: "event on main", fromOne(.mainDispatch), over: fromOne(.main)),
    Benchmark("event-wait", of: awaited, trips(.stock), over: trips(.scheduler), .atLeast(0.9, aim: 0.9)),
    Benchmark("event-wait-dispatch", of: awaited, trips(.dispatch), over: trips(.scheduler), .atLeast(0.7, aim: 0.7)),
    Benchmark("actor", of: "await actor.method()", scheduledCalls, over: defaultCalls),
    Benchmark("confined", of: "append to an array of 100,000", confinedArray, over: plainArray, .atMost(10)),
  ]

  /// What runs events one after the other.
  private enum Runner: String {
    case stock = "OperationQueue of one"
    case scheduler = "SerialScheduler"
    case dispatch = "serial DispatchQueue"
    case main = "SerialScheduler.main"
    case mainDispatch = "DispatchQueue.main"

    /// Creates one, and returns the function that gives it an event.
    func make() -> (@escaping @Sendable () -> Void) -> Void {
      switch self {
      case .stock: return { [queue = OperationQueue.limited(to: 1)] in queue.addOperation($0) }
      case .scheduler: return { [scheduler = SerialScheduler(name: "serial")] in scheduler.schedule($0) }
      case .dispatch: return { [queue = DispatchQueue(label: "serial")] in queue.async(execute: $0) }
      case .main: return { SerialScheduler.main.schedule($0) }
      case .mainDispatch: return { DispatchQueue.main.async(execute: $0) }
      }
    }
  }

  private static func fromOne(_ runner: Runner, _ count: Int = events) -> Workload {
    Workload(name: runner.rawValue, units: count) {
      Lifetime.run { lifetime in
        let post = runner.make()
        for index in 0..<count {
          let lifetime = lifetime(index)
          post { withExtendedLifetime(lifetime) {} }
        }
      }
    }
  }

  private static func fromMany(_ runner: Runner) -> Workload {
    Workload(name: "\(runner.rawValue), \(producers) producers", units: events) {
      let end = DispatchGroup()
      nonisolated(unsafe) let post = runner.make()
      DispatchQueue.concurrentPerform(iterations: producers) { _ in
        let lifetime = Lifetime(end)
        for _ in 0..<events / producers { unsafe post { withExtendedLifetime(lifetime) {} } }
      }
      end.wait()
    }
  }

  private static func trips(_ runner: Runner) -> Workload {
    nonisolated(unsafe) let post = runner.make()
    return Workload(name: "\(runner.rawValue), one at a time", units: roundTrips) {
      let done = DispatchSemaphore(value: 0)
      for _ in 0..<roundTrips {
        unsafe post { done.signal() }
        done.wait()
      }
    }
  }

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

private protocol Counter: Actor { func count() }

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
