import Foundation
import Operations

/// Somebody who schedules, on a thread of its own.
final class SoakProducer: Sendable {
  /// What has been scheduled, locked because the thread sanitizer does not see that a task is resumed after its thread.
  struct Work {
    /// The last of each home.
    var numbers: [Int: Int] = [:]
    var coalesced: [Int: Int] = [:]
    var tasks: [Task<Void, Never>] = []

    mutating func nextNumber(_ home: Int) -> Int {
      numbers[home, default: 0] += 1
      return numbers[home, default: 0]
    }

    mutating func nextCoalesced(_ home: Int) -> Int {
      coalesced[home, default: 0] += 1
      return coalesced[home, default: 0]
    }
  }

  let number: Int
  let work = Locked(Work())
  private unowned let events: SoakEvents

  init(_ number: Int, _ events: SoakEvents) {
    self.number = number
    self.events = events
  }

  func run(_ steps: [SoakEvent]) {
    for (count, step) in steps.enumerated() {
      carryOut(step)
      guard number == 1 else { continue }
      for home in events.homes {
        guard let (after, end) = home.plan.shutdown, after == count else { continue }
        home.scheduler.shutDown(end == .drain ? .drain : .discard)
      }
      if count.isMultiple(of: 17) {
        events.homes[0].scheduler.isSuspended = true
        events.homes[0].scheduler.isSuspended = false
      }
    }
  }

  private func nextNumber(_ home: Int) -> Int { work.withLock { $0.nextNumber(home) } }

  private func carryOut(_ step: SoakEvent) {
    let (home, producer, token) = (events.homes[step.home], number, LiveCount.Token(events.live))
    switch step.kind {
    case .schedule:
      let number = nextNumber(step.home)
      note(home, home.schedule { home in withExtendedLifetime(token) { home.visit(producer, number, isEvent: true) } })
    case .object:
      let number = nextNumber(step.home)
      note(
        home,
        home.box.schedule { [home] box in
          box.visits += 1
          withExtendedLifetime(token) { home.visit(producer, number, isEvent: true) }
        }
      )
    case .coalesced:
      let number = work.withLock { $0.nextCoalesced(step.home) }
      note(home, home.schedule(coalescing: "\(producer)") { home in home.visitCoalesced(producer, number) })
    case .operation:
      let number = nextNumber(step.home)
      home.scheduler.queue.addOperation { withExtendedLifetime(token) { home.visit(producer, number) } }
    case .asynchronousOperation:
      let number = nextNumber(step.home)
      let operation = AsyncBlockOperation { operation in
        home.visit(producer, number)
        SoakOperation.elsewhere.async { withExtendedLifetime(token) { operation.finish() } }
      }
      home.scheduler.queue.addOperation(operation)
    case .delayed(let ticks, let isCancelled):
      let pending = LiveCount.Token(events.delayed)
      // Of those that are cancelled it counts what was too late; a shutdown may come before that.
      let countsWhenRun = isCancelled && home.plan.shutdown == nil
      if !countsWhenRun { home.account.withLock { $0.attempts += 1 } }
      let event = home.schedule(after: .milliseconds(ticks)) { home in
        if countsWhenRun { home.account.withLock { $0.attempts += 1 } }
        withExtendedLifetime((token, pending)) { home.visit(producer, nil, isEvent: true) }
      }
      if isCancelled { SoakOperation.elsewhere.async { event.cancel() } }
    case .run(let isCancelled):
      attempt(home, isCancelled) {
        try await home.run { home in withExtendedLifetime(token) { home.visit(producer, nil, isEvent: true) } }
      }
    case .send(let isCancelled):
      attempt(home, isCancelled) {
        try await home.send { home in withExtendedLifetime(token) { home.visit(producer, nil, isEvent: true) } }
      }
    case .actor:
      let task = Task { [tenant = events.tenants[step.home]] in await tenant.visit() }
      work.withLock { $0.tasks.append(task) }
    case .wait(let others): wait(step.home, nextNumber(step.home), others[...])
    case .delivered(let other):
      let (number, other) = (nextNumber(step.home), events.homes[other])
      let isAccepted = home.schedule(
        { home in home.visit(producer, number, isEvent: true) },
        deliverOn: other.scheduler,
        { _ in withExtendedLifetime(token) { other.visit(producer, nil, isEvent: true) } }
      )
      note(home, isAccepted)
      if isAccepted { other.account.withLock { $0.attempts += 1 } }
    }
  }

  private func note(_ home: SoakHome, _ isAccepted: Bool) {
    home.account.withLock { account in
      account.attempts += 1
      if isAccepted { account.accepted += 1 }
    }
  }

  private func attempt(_ home: SoakHome, _ isCancelled: Bool, _ body: @escaping @Sendable () async throws -> Void) {
    home.account.withLock { $0.attempts += 1 }
    let task = Task { [events] in
      do { try await body() } catch OperationError.Code.shutDown, OperationError.Code.overflow {
        if home.plan.takesAll { events.report("\(home.scheduler.name) refused what it takes") }
      } catch {
        if error is CancellationError, isCancelled {
          home.account.withLock { $0.attempts -= 1 }
        } else {
          events.report("\(home.scheduler.name): \(error)")
        }
      }
    }
    if isCancelled { SoakOperation.elsewhere.async { task.cancel() } }
    work.withLock { $0.tasks.append(task) }
  }

  /// From one to the next, each waiting for the one it leads to. Waits that would never end are refused.
  private func wait(_ index: Int, _ number: Int?, _ others: ArraySlice<Int>) {
    let (home, producer) = (events.homes[index], self.number)
    let isEvent = !home.scheduler.isCurrent
    if isEvent { home.account.withLock { $0.attempts += 1 } }
    do {
      try home.wait { [self] home in
        if isEvent {
          home.visit(producer, number, isEvent: true)
        } else {
          home.visit(producer, number)
        }
        if let next = others.first { wait(next, nil, others.dropFirst()) }
      }
    } catch OperationError.Code.waitCycle {
      if number != nil { events.report("a thread that is on no scheduler waits in a cycle") }
      home.account.withLock { $0.attempts -= 1 }
    } catch OperationError.Code.shutDown {
      if home.plan.shutdown == nil { events.report("\(home.scheduler.name) is not shut down") }
    } catch { events.report("wait: \(error)") }
  }
}
