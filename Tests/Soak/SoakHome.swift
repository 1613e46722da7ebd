import Foundation
import Operations
import OperationsTestSupport

/// What lives on a scheduler. Its state has no lock: the thread sanitizer sees whether the scheduler is one.
final class SoakHome: Schedulable, @unchecked Sendable {
  /// Belongs to the home's scheduler, is no actor, and is not Sendable.
  final class Box {
    var visits = 0
  }

  /// An actor at the same place.
  actor Tenant: ScheduledActor {
    nonisolated let scheduler: SerialScheduler
    private unowned let home: SoakHome

    init(_ home: SoakHome) {
      scheduler = home.scheduler
      self.home = home
    }

    func visit() { home.visit(0, nil) }
  }

  /// What those who schedule count, on their threads.
  struct Account {
    /// Events that were to be run, refused ones and all, without those that were taken back.
    var attempts = 0
    /// Events that were accepted at once.
    var accepted = 0
  }

  let plan: SoakHomePlan
  let scheduler: SerialScheduler
  let account = Locked(Account())
  let box: SchedulableObject<Box>
  private let token: LiveCount.Token
  private var isInside = false
  private var last: [Int: Int] = [:]
  private var lastCoalesced: [Int: Int] = [:]
  private(set) var violations: [String] = []
  /// Those that were events.
  private(set) var eventVisits = 0

  init(_ index: Int, _ plan: SoakHomePlan, _ clock: ManualClock, _ live: LiveCount) {
    self.plan = plan
    let policies = EventCapacity.Policy.allCases
    let capacity = plan.capacity.map { EventCapacity($0, whenFull: policies[plan.policy % policies.count]) }
    scheduler = SerialScheduler(name: "home \(index)", capacity: capacity, clock: clock)
    box = SchedulableObject(Box(), on: scheduler)
    token = LiveCount.Token(live)
  }

  /// - Parameter number: The how manieth of the producer's here; nil for one that is in no order.
  func visit(_ producer: Int, _ number: Int?, isEvent: Bool = false) {
    if !scheduler.isCurrent { violations.append("\(scheduler.name): not current") }
    if isInside { violations.append("\(scheduler.name): two at once") }
    isInside = true
    if isEvent { eventVisits += 1 }
    if let number {
      let previous = last[producer, default: 0]
      if plan.takesAll ? number != previous + 1 : number <= previous {
        violations.append("\(scheduler.name): the \(number). of producer \(producer) came after its \(previous).")
      }
      last[producer] = number
    }
    isInside = false
  }

  func visitCoalesced(_ producer: Int, _ number: Int) {
    visit(producer, nil, isEvent: true)
    if number <= lastCoalesced[producer, default: 0] {
      violations.append("\(scheduler.name): the coalesced \(number). of producer \(producer) came too late")
    }
    lastCoalesced[producer] = number
  }

  /// Everything has been run by now.
  func check(last expected: [Int: Int], coalesced: [Int: Int]) -> [String] {
    var violations = violations
    let name = scheduler.name
    let statistics = scheduler.statistics
    let account = account.withLock { $0 }
    if plan.takesAll {
      if last != expected { violations.append("\(name): events were lost, \(last) of \(expected)") }
      if lastCoalesced != coalesced { violations.append("\(name): the latest is not the last, \(lastCoalesced)") }
    }
    if statistics.eventsQueued + statistics.jobsQueued > 0 { violations.append("\(name): something is left") }
    if statistics.eventsRun != eventVisits {
      violations.append("\(name): \(eventVisits) events were run, and \(statistics.eventsRun) counted")
    }
    let known = statistics.eventsRun + statistics.eventsCoalesced + statistics.eventsDropped
    let isRight = plan.shutdown == nil ? known == account.attempts : (account.accepted...account.attempts) ~= known
    if !isRight { violations.append("\(name): \(account) became \(statistics)") }
    return violations
  }
}
