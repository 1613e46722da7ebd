import Foundation
import Operations
import OperationsTestSupport

final class SoakRound: @unchecked Sendable {
  let world: SoakWorld
  private let watchdog: SoakWatchdog
  private let feed: SoakFeed
  /// Advances the world's clock, a millisecond per tick. The speed of the ticks must not change any result.
  private let timer = DispatchSource.makeTimerSource(queue: DispatchQueue(label: "soak clock"))

  init(_ plan: SoakPlan, _ watchdog: SoakWatchdog) {
    self.watchdog = watchdog
    let world = SoakWorld(plan, watchdog.live)
    self.world = world
    feed = SoakFeed(world)
    for action in plan.actions { world.after(action.tick) { world.carryOut(action.deed) } }
  }

  func run() async -> [String] {
    let events = Task { [world] in await world.runEvents() }
    let feeding = Task { [feed] in await feed.run() }
    timer.schedule(deadline: .now(), repeating: .microseconds(250))
    timer.setEventHandler { [clock = world.clock] in clock.advance(by: .milliseconds(1)) }
    timer.resume()
    await watchdog.stage("enqueueing") { await enqueueAll() }
    await watchdog.stage("operations") {
      for item in world.plan.items where !item.isNewcomer {
        for part in world.parts[item.index] { await part.finished() }
      }
    }
    await watchdog.stage("actions") { await world.pending.none() }
    await watchdog.stage("newcomers") {
      for case .added(let index) in world.log.entries { await world.operations[index].finished() }
    }
    await watchdog.stage("awaiting tasks") { for task in world.tasks.withLock({ $0 }) { await task.value } }
    await watchdog.stage("events") { await events.value }
    await watchdog.stage("probes") { await probe() }
    await watchdog.stage("feed") { await feeding.value }
    timer.cancel()
    await world.checkEvents()
    return SoakChecks(world).violations
  }

  // MARK: Enqueueing

  private func enqueueAll() async {
    await withTaskGroup(of: Void.self) { group in
      for indices in world.plan.enqueuers {
        group.addTask { await onNewThread { for index in indices { self.enqueue(self.world.plan.items[index]) } } }
      }
    }
  }

  private func enqueue(_ item: SoakItem) {
    let queue =
      if case .queue(let number) = item.place { world.queues[number] } else { world.homes[1].scheduler.queue }
    queue.addOperations(Array(world.parts[item.index].dropLast()))
    let operation = world.operations[item.index]
    guard let own = operation as? AsyncOperation else { return queue.addOperation(operation) }
    queue.addOperation(own)
    if case .awaited(let delay) = item.coming { awaitOutcome(of: own, item.index, cancelledAfter: delay) }
  }

  /// Awaits an operation as `run` does, which would also add the dependencies that other threads are about to add.
  private func awaitOutcome(of operation: AsyncOperation, _ index: Int, cancelledAfter delay: Int?) {
    let log = world.log
    let task = Task {
      do {
        try await withTaskCancellationHandler {
          guard let own = operation as? ResultOperation<Int> else {
            try await operation.completed()
            if !operation.isSuccessful { log.report("\(index) failed, and its awaiting task got no error") }
            return
          }
          let value = try await own.value
          if case .success(value)? = own.result { return }
          log.report("\(index) gave \(value) to its awaiting task, and has \(String(describing: own.result))")
        } onCancel: {
          operation.cancel()
        }
      } catch {
        // The wait of a cancelled task ends at once.
        if Task.isCancelled, error is CancellationError { return }
        if operation.isSuccessful { log.report("\(index) succeeded, and its awaiting task got \(error)") }
        if !operation.isFinished { log.report("the task awaiting \(index) was resumed too early") }
      }
    }
    world.tasks.withLock { $0.append(task) }
    if let delay { world.after(delay) { task.cancel() } }
  }

  // MARK: Probes

  /// Uses everything once more.
  private func probe() async {
    for queue in world.queues {
      _ = try? await queue.run(ResultOperation { 1 })
      await queue.finished()
    }
    for (domain, key) in world.domains.flatMap({ domain in SoakPlan.keys.map { (domain, $0) } }) {
      _ = try? await world.queues[0].run(ResultOperation { 1 }.exclusive(ExclusivityKey(key), in: domain))
    }
    _ = try? await world.ends.run { 1 }
  }
}
