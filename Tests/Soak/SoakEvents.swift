import Foundation
import Operations
import OperationsTestSupport

/// The schedulers of a plan, and those who schedule there.
final class SoakEvents: @unchecked Sendable {
  let homes: [SoakHome]
  let tenants: [SoakHome.Tenant]
  let live: LiveCount
  /// Events for a time to come that have neither been run nor dropped.
  let delayed = LiveCount()
  private let plan: SoakPlan
  private let found = Locked<[String]>([])
  private var producers: [SoakProducer] = []

  init(_ plan: SoakPlan, _ clock: ManualClock, _ live: LiveCount) {
    self.plan = plan
    self.live = live
    homes = plan.homes.enumerated().map { SoakHome($0, $1, clock, live) }
    tenants = homes.map { SoakHome.Tenant($0) }
    producers = plan.producers.indices.map { SoakProducer($0 + 1, self) }
  }

  func report(_ violation: String) { found.withLock { $0.append(violation) } }

  /// Has everything scheduled, and waits until it has been run.
  func run() async {
    await withTaskGroup(of: Void.self) { group in
      for (producer, steps) in Swift.zip(producers, plan.producers) {
        group.addTask {
          await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            // It may block.
            Thread.detachNewThread {
              producer.run(steps)
              continuation.resume()
            }
          }
          for task in producer.work.withLock({ $0.tasks }) { await task.value }
        }
      }
    }
    await delayed.none()
    // What is delivered may come from one that was looked at before.
    for _ in 0..<2 {
      for home in homes {
        await home.scheduler.queue.finished()
        await home.scheduler.drained()
      }
    }
  }

  func check() async -> [String] {
    var violations = found.withLock { $0 }
    for (index, home) in homes.enumerated() {
      // Not as an event, which would be counted; and a scheduler that is shut down takes none.
      let statistics = await Self.onScheduler(of: home) { [producers] home in
        let works = producers.map { ($0.number, $0.work.withLock { $0 }) }
        let numbers = works.compactMap { number, work in work.numbers[index].map { (number, $0) } }
        let coalesced = works.compactMap { number, work in work.coalesced[index].map { (number, $0) } }
        return home.check(
          last: Dictionary(uniqueKeysWithValues: numbers),
          coalesced: Dictionary(uniqueKeysWithValues: coalesced)
        )
      }
      violations += statistics
    }
    return violations
  }

  private static func onScheduler<T: Sendable>(
    of home: SoakHome,
    _ body: @escaping @Sendable (SoakHome) -> T
  ) async -> T {
    await withCheckedContinuation { continuation in
      home.scheduler.queue.addOperation { continuation.resume(returning: body(home)) }
    }
  }

  var eventCount: Int { homes.reduce(0) { $0 + $1.scheduler.statistics.eventsRun } }
}
