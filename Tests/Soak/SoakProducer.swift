import Foundation
import Operations

/// Calls `body` on a thread of its own, because it may block.
package func onNewThread<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
  await withCheckedContinuation { continuation in Thread.detachNewThread { continuation.resume(returning: body()) } }
}

final class SoakProducer: Sendable {
  private let number: Int
  private let steps: [(home: Int, event: SoakEvent)]
  private unowned let world: SoakWorld
  /// Locked because the thread sanitizer does not see that a task is resumed after its thread.
  private let tasks = Locked<[Task<Void, Never>]>([])

  init(_ number: Int, _ steps: [(home: Int, event: SoakEvent)], _ world: SoakWorld) {
    self.number = number
    self.steps = steps
    self.world = world
  }

  func run() async {
    await onNewThread {
      for (count, step) in self.steps.enumerated() {
        self.world.screen.send(count, from: self.number, LiveCount.Token(self.world.live))
        self.carryOut(step.event, self.world.homes[step.home], self.world.tenants[step.home])
        if self.number == 1 { self.disturb(after: count) }
      }
    }
    for task in tasks.withLock({ $0 }) { await task.value }
  }

  private func disturb(after count: Int) {
    for home in world.homes {
      if let (after, mode) = home.plan.shutdown, after == count { home.scheduler.shutDown(mode) }
    }
    if count.isMultiple(of: 17) {
      world.homes[0].scheduler.isSuspended = true
      world.homes[0].scheduler.isSuspended = false
    }
  }

  private func carryOut(_ event: SoakEvent, _ home: SoakHome, _ tenant: SoakHome.Tenant) {
    let (producer, token) = (number, LiveCount.Token(world.live))
    let visit: @Sendable (SoakHome, Int?) -> Void = { home, number in
      withExtendedLifetime(token) { home.visit(producer, number, isEvent: true) }
    }
    switch event {
    case .schedule:
      let number = home.next(\.numbers, of: producer)
      note(home, home.schedule { visit($0, number) })
    case .object:
      let number = home.next(\.numbers, of: producer)
      let isAccepted = home.box.schedule { [home] box in
        box.visits += 1
        visit(home, number)
      }
      note(home, isAccepted)
    case .coalesced:
      let number = home.next(\.coalesced, of: producer)
      note(home, home.schedule(coalescing: "\(producer)") { home in home.visitCoalesced(producer, number) })
    case .operation:
      let number = home.next(\.numbers, of: producer)
      home.scheduler.queue.addOperation { withExtendedLifetime(token) { home.visit(producer, number) } }
    case .asynchronousOperation:
      let number = home.next(\.numbers, of: producer)
      let operation = AsyncBlockOperation { operation in
        home.visit(producer, number)
        SoakOperation.elsewhere.async { withExtendedLifetime(token) { operation.finish() } }
      }
      home.scheduler.queue.addOperation(operation)
    case .delayed(let ticks, let isCancelled):
      let pending = LiveCount.Token(world.delayed)
      // A cancelled event counts if the cancellation was too late. A shutdown may come before that.
      let countsWhenRun = isCancelled && home.plan.shutdown == nil
      if !countsWhenRun { home.account.withLock { $0.attempts += 1 } }
      let event = home.schedule(after: .milliseconds(ticks)) { home in
        if countsWhenRun { home.account.withLock { $0.attempts += 1 } }
        withExtendedLifetime(pending) { visit(home, nil) }
      }
      if isCancelled { SoakOperation.elsewhere.async { event.cancel() } }
    case .run(let isCancelled): attempt(home, isCancelled) { try await home.run { visit($0, nil) } }
    case .send(let isCancelled): attempt(home, isCancelled) { try await home.send { visit($0, nil) } }
    case .actor:
      let task = Task { await tenant.visit() }
      tasks.withLock { $0.append(task) }
    case .wait(let others): wait(home, home.next(\.numbers, of: producer), others[...])
    case .delivered(let other):
      let (number, other) = (home.next(\.numbers, of: producer), world.homes[other])
      let isAccepted = home.schedule({ visit($0, number) }, deliverOn: other.scheduler, { _ in visit(other, nil) })
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
    let task = Task { [log = world.log] in
      do { try await body() } catch OperationError.Code.shutDown, OperationError.Code.overflow {
        if home.plan.takesAll { log.report("\(home.scheduler.name) refused what it takes") }
      } catch {
        if error is CancellationError, isCancelled {
          home.account.withLock { $0.attempts -= 1 }
        } else {
          log.report("\(home.scheduler.name): \(error)")
        }
      }
    }
    if isCancelled { SoakOperation.elsewhere.async { task.cancel() } }
    tasks.withLock { $0.append(task) }
  }

  /// Waits from one home to the next, each for the one it leads to. Waits that would never end are refused.
  private func wait(_ home: SoakHome, _ number: Int?, _ others: ArraySlice<Int>) {
    let isEvent = !home.scheduler.isCurrent
    if isEvent { home.account.withLock { $0.attempts += 1 } }
    do {
      try home.wait { [self] home in
        home.visit(self.number, number, isEvent: isEvent)
        if let next = others.first { wait(world.homes[next], nil, others.dropFirst()) }
      }
    } catch OperationError.Code.waitCycle {
      if number != nil { world.log.report("a thread that is on no scheduler waits in a cycle") }
      home.account.withLock { $0.attempts -= 1 }
    } catch OperationError.Code.shutDown {
      if home.plan.shutdown == nil { world.log.report("\(home.scheduler.name) is not shut down") }
    } catch { world.log.report("wait: \(error)") }
  }
}
