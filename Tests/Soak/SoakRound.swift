import Foundation
import Operations
import OperationsTestSupport

/// Carries a plan out.
final class SoakRound: @unchecked Sendable {
  let world: SoakWorld
  private let watchdog: SoakWatchdog
  private let awaited = Locked<[Int: Task<Void, Never>]>([:])
  private let sharing: SoakSharing
  private let clock: SoakClock
  private let feed: SoakFeed

  init(_ plan: SoakPlan, _ watchdog: SoakWatchdog) {
    self.watchdog = watchdog
    let (world, awaited) = (SoakWorld(plan, watchdog.live), awaited)
    self.world = world
    feed = SoakFeed(world)
    sharing = SoakSharing(world)
    var deeds: [SoakClock.Deed] = plan.actions.map { action in (action.tick, { world.carryOut(action.deed) }) }
    for item in plan.items {
      if case .awaited(let tick?) = item.coming {
        deeds.append((tick, { awaited.withLock { $0[item.index] }?.cancel() }))
      }
    }
    clock = SoakClock(world.clock, deeds + sharing.deeds)
  }

  /// - Returns: The violations.
  func run() async -> [String] {
    let events = Task { [world] in await world.runEvents() }
    let feeding = Task { [feed] in await feed.run() }
    clock.start()
    await watchdog.stage("enqueueing") { await enqueueAll() }
    await watchdog.stage("operations") {
      for item in world.plan.items where !item.isNewcomer {
        for part in world.parts[item.index] { await part.finished() }
      }
    }
    await watchdog.stage("actions") { await clock.pending.none() }
    await watchdog.stage("newcomers") {
      for case .added(let index) in world.log.entries { await world.operations[index].finished() }
    }
    await watchdog.stage("awaiting tasks") {
      for task in awaited.withLock({ $0.values.map(\.self) }) { await task.value }
      await sharing.end()
    }
    await watchdog.stage("events") { await events.value }
    await watchdog.stage("probes") { await probe() }
    await watchdog.stage("feed") { await feeding.value }
    clock.stop()
    let violations = await world.checkEvents()
    return SoakChecks(world).violations + violations
  }

  // MARK: Enqueueing

  private func enqueueAll() async {
    await withTaskGroup(of: Void.self) { group in
      for indices in world.plan.enqueuers {
        group.addTask { await onThread { for index in indices { self.enqueue(self.world.plan.items[index]) } } }
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
    if case .awaited = item.coming { awaitOutcome(of: own, item.index) }
  }

  /// Awaits an operation as `run` does, which would also add the dependencies that other threads are about to add.
  private func awaitOutcome(of operation: AsyncOperation, _ index: Int) {
    let log = world.log
    let task = Task {
      do {
        if let own = operation as? ResultOperation<Int> {
          let value = try await withTaskCancellationHandler {
            try await own.value
          } onCancel: {
            own.cancel()
          }
          if case .success(value)? = own.result { return }
          log.report("\(index) gave \(value) to its awaiting task, and has \(String(describing: own.result))")
        } else {
          try await withTaskCancellationHandler {
            try await operation.completed()
          } onCancel: {
            operation.cancel()
          }
          if !operation.isSuccessful { log.report("\(index) failed, and its awaiting task got no error") }
        }
      } catch {
        // The wait of a cancelled task ends at once.
        if Task.isCancelled, error is CancellationError { return }
        if operation.isSuccessful { log.report("\(index) succeeded, and its awaiting task got \(error)") }
        if !operation.isFinished { log.report("the task awaiting \(index) was resumed too early") }
      }
    }
    awaited.withLock { $0[index] = task }
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
    await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
      DispatchQueue.global().async { continuation.resume() }
    }
  }
}

/// Advances a world's clock, a millisecond per tick, and carries out the deeds that are due.
///
/// The speed of the ticks must not change any result.
final class SoakClock: @unchecked Sendable {
  typealias Deed = (tick: Int, body: @Sendable () -> Void)

  /// The deeds that have not been carried out.
  let pending = LiveCount()
  private let clock: ManualClock
  private let state: Locked<(tick: Int, deeds: [Deed])>
  private let timer = DispatchSource.makeTimerSource(queue: DispatchQueue(label: "soak clock"))

  init(_ clock: ManualClock, _ deeds: [Deed]) {
    self.clock = clock
    let pending = pending
    let deeds = deeds.sorted { $0.tick < $1.tick }.map { tick, body -> Deed in
      let token = LiveCount.Token(pending)
      return (tick, { withExtendedLifetime(token) { body() } })
    }
    state = Locked((0, deeds))
  }

  func start() {
    timer.schedule(deadline: .now(), repeating: .microseconds(250))
    timer.setEventHandler { self.advance() }
    timer.resume()
  }

  /// The handler holds this.
  func stop() {
    timer.setEventHandler {}
    timer.cancel()
  }

  private func advance() {
    clock.advance(by: .milliseconds(1))
    let due = state.withLock { state in
      state.tick += 1
      let due = state.deeds.prefix { $0.tick < state.tick }
      state.deeds.removeFirst(due.count)
      return due
    }
    for deed in due { DispatchQueue.global().async(execute: deed.body) }
  }
}
