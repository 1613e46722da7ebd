import Foundation
import Operations
import OperationsTestSupport

/// Carries a plan out.
final class SoakRound: @unchecked Sendable {
  let world: SoakWorld
  private let plan: SoakPlan
  private let watchdog: SoakWatchdog
  let awaited = Locked<[Int: Task<Void, Never>]>([:])
  let sharing: SoakSharing
  private let clock: SoakClock
  private let feed: SoakFeed

  init(_ plan: SoakPlan, _ live: LiveCount, _ watchdog: SoakWatchdog) {
    self.plan = plan
    self.watchdog = watchdog
    feed = SoakFeed(seed: plan.seed, live)
    let world = SoakWorld(plan, live)
    self.world = world
    let (awaited, sharing) = (awaited, SoakSharing(plan.callers, world))
    self.sharing = sharing
    var deeds: [(tick: Int, deed: SoakClock.Deed)] = plan.actions.map { action in
      (action.tick, { world.carryOut(action.deed) })
    }
    for item in plan.items {
      guard case .awaited(let tick?) = item.coming else { continue }
      deeds.append((tick, { awaited.withLock { $0[item.index] }?.cancel() }))
    }
    clock = SoakClock(world.clock, deeds + sharing.deeds)
  }

  /// - Returns: What is wrong.
  func run() async -> [String] {
    let events = Task { [world] in await world.events.run() }
    let feeding = Task { [feed] in await feed.run() }
    clock.start()
    await watchdog.stage("enqueueing") { await enqueueAll() }
    await watchdog.stage("operations") {
      for index in plan.items.indices where isComing(index) {
        for part in world.parts[index] { await part.finished() }
      }
    }
    await watchdog.stage("actions") { await clock.isDone.opened() }
    await watchdog.stage("newcomers") {
      for case .added(let index) in world.log.entries { await world.operations[index].finished() }
    }
    await watchdog.stage("awaiting tasks") {
      for task in awaited.withLock({ $0.values.map(\.self) }) { await task.value }
      await sharing.end()
    }
    await watchdog.stage("events") { await events.value }
    await watchdog.stage("probes") { await probe() }
    var fed: [String] = []
    await watchdog.stage("feed") { fed = await feeding.value }
    clock.stop()
    let violations = SoakChecks(world).violations + sharing.violations + fed
    return await violations + world.events.check()
  }

  private func isComing(_ index: Int) -> Bool {
    switch plan.items[index].coming {
    case .atFirst, .awaited: true
    case .broughtBy, .whenGroupIsCancelled: false
    }
  }

  // MARK: Enqueueing

  private func enqueueAll() async {
    await withTaskGroup(of: Void.self) { group in
      for indices in plan.enqueuers {
        group.addTask {
          await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            Thread.detachNewThread {
              for index in indices { self.enqueue(self.plan.items[index]) }
              continuation.resume()
            }
          }
        }
      }
    }
  }

  private func enqueue(_ item: SoakItem) {
    let queue: OperationQueue
    switch item.place {
    case .queue(let number): queue = world.queues[number]
    case .scheduler: queue = world.events.homes[1].scheduler.queue
    case .group: return
    }
    let (operation, parts) = (world.operations[item.index], world.parts[item.index].dropLast())
    queue.addOperations(Array(parts))
    if case .awaited = item.coming, let own = operation as? AsyncOperation { return run(own, item.index, queue) }
    if let own = operation as? AsyncOperation { queue.addOperation(own) } else { queue.addOperation(operation) }
  }

  private func run(_ operation: AsyncOperation, _ index: Int, _ queue: OperationQueue) {
    let log = world.log
    let task = Task {
      do {
        if let own = operation as? ResultOperation<Int> {
          let value = try await queue.run(own)
          if case .success(value)? = own.result.map(Outcome.init) { return }
          log.report("\(index) gave \(value) to who awaited it, and has \(String(describing: own.result))")
        } else {
          try await queue.run(operation)
          if !operation.isSuccessful { log.report("\(index) failed, and who awaited it has not heard") }
        }
      } catch {
        if operation.isSuccessful { log.report("\(index) succeeded, and who awaited it got \(error)") }
        if !operation.isFinished { log.report("who awaited \(index) went on too early") }
      }
    }
    awaited.withLock { $0[index] = task }
  }

  private enum Outcome {
    case success(Int)
    case failure

    init(_ result: Result<Int, any Error>) {
      if case .success(let value) = result { self = .success(value) } else { self = .failure }
    }
  }

  // MARK: Probes

  /// Everything can still be used.
  private func probe() async {
    for queue in world.queues {
      _ = try? await queue.run(ResultOperation { 1 })
      await queue.finished()
    }
    for (domain, key) in world.domains.flatMap({ domain in SoakPlan.keys.map { (domain, $0) } }) {
      _ = try? await world.queues[0].run(ResultOperation { 1 }.exclusive(ExclusivityKey(key), in: domain))
    }
    _ = try? await world.ends.run { 1 }
    await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
      DispatchQueue.global().async { continuation.resume() }
    }
  }
}
