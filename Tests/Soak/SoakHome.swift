import Foundation
import Operations
import OperationsTestSupport

/// An object that lives on a scheduler. Its state has no lock, so the thread sanitizer sees whether the scheduler is
/// one.
final class SoakHome: Schedulable, @unchecked Sendable {
  /// Belongs to the home's scheduler, is no actor, and is not Sendable.
  final class Box { var visits = 0 }

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

  /// What the producers count, on their threads.
  struct Account {
    /// Events that must run, even refused ones, without those that were taken back.
    var attempts = 0
    /// Events that were accepted at once.
    var accepted = 0
    /// The last number of each producer.
    var numbers: [Int: Int] = [:]
    var coalesced: [Int: Int] = [:]
  }

  let plan: SoakHomePlan
  let scheduler: SerialScheduler
  let account = Locked(Account())
  let box: SchedulableObject<Box>
  private let log: SoakLog
  private let token: LiveCount.Token
  private var isInside = false
  private var last: [Int: Int] = [:]
  private var lastCoalesced: [Int: Int] = [:]
  /// The visits that were events.
  private var eventVisits = 0

  init(_ index: Int, _ plan: SoakHomePlan, _ clock: ManualClock, _ log: SoakLog, _ live: LiveCount) {
    self.plan = plan
    self.log = log
    scheduler = SerialScheduler(name: "home \(index)", capacity: plan.capacity, clock: clock)
    box = SchedulableObject(Box(), on: scheduler)
    token = LiveCount.Token(live)
  }

  /// Draws the next number of a producer here.
  func next(_ numbers: WritableKeyPath<Account, [Int: Int]>, of producer: Int) -> Int {
    account.withLock { account in
      account[keyPath: numbers][producer, default: 0] += 1
      return account[keyPath: numbers][producer, default: 0]
    }
  }

  /// - Parameter number: The number among the producer's visits here, or nil for a visit in no order.
  func visit(_ producer: Int, _ number: Int?, isEvent: Bool = false) {
    if !scheduler.isCurrent { report("not current") }
    if isInside { report("two at once") }
    isInside = true
    if isEvent { eventVisits += 1 }
    if let number {
      let previous = last[producer, default: 0]
      if plan.takesAll ? number != previous + 1 : number <= previous {
        report("the \(number). of producer \(producer) came after its \(previous).")
      }
      last[producer] = number
    }
    isInside = false
  }

  func visitCoalesced(_ producer: Int, _ number: Int) {
    visit(producer, nil, isEvent: true)
    if number <= lastCoalesced[producer, default: 0] {
      report("the coalesced \(number). of producer \(producer) came too late")
    }
    lastCoalesced[producer] = number
  }

  private func report(_ violation: String) { log.report("\(scheduler.name): \(violation)") }

  /// Everything has been run by now.
  func check() {
    let (statistics, account) = (scheduler.statistics, account.withLock { $0 })
    if plan.takesAll {
      if last != account.numbers { report("events were lost, \(last) of \(account.numbers)") }
      if lastCoalesced != account.coalesced { report("the latest is not the last, \(lastCoalesced)") }
    }
    if statistics.eventsQueued + statistics.jobsQueued > 0 { report("something is left") }
    if statistics.eventsRun != eventVisits {
      report("\(eventVisits) events were run, and \(statistics.eventsRun) counted")
    }
    let known = statistics.eventsRun + statistics.eventsCoalesced + statistics.eventsDropped
    let isRight = plan.shutdown == nil ? known == account.attempts : (account.accepted...account.attempts) ~= known
    if !isRight { report("\(account) became \(statistics)") }
  }
}

extension SoakWorld {
  /// Schedules all events, and waits until they have been run.
  func runEvents() async {
    await withTaskGroup(of: Void.self) { group in for producer in producers { group.addTask { await producer.run() } } }
    await delayed.none()
    await screen.arrived()
    // The first home may receive a delivery from a later one.
    for home in homes + homes {
      await home.scheduler.queue.finished()
      await home.scheduler.drained()
    }
  }

  func checkEvents() async {
    for home in homes {
      // Not as an event, which would be counted; and a scheduler that is shut down takes none.
      await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
        home.scheduler.queue.addOperation { continuation.resume(returning: home.check()) }
      }
    }
  }
}
