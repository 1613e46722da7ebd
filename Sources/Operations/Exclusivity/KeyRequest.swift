import Foundation

/// An operation's request for its keys. The table retains the request, but not the operation, so an operation that is
/// released withdraws its request. The claims are guarded by the operation's lock until the operation has been added.
final class KeyRequest: KeyClaimant, @unchecked Sendable {
  private weak var owner: AsyncOperation?
  private let id: ObjectIdentifier
  /// Whether those that use the keys inside the operation keep them after its end.
  private let lends: Bool
  /// The slots of a member's group, its arrival there, and its flow, until its end. Guarded by the registry's lock.
  private var slots: (engine: GroupEngine, number: Int, flow: ExclusivityKey?)?

  init(of operation: AsyncOperation, lends: Bool) {
    owner = operation
    id = ObjectIdentifier(operation)
    self.lends = lends
    super.init()
  }

  var goal: String {
    let keys = claims.filter { $0.interval == nil }.map(\.key)
    return (keys.count == 1 ? "the key " : "the keys ") + keys.quoted
  }

  // MARK: The turn of the operation, without a lock held

  /// Enters the wait queues, or returns to them. A later turn is reported to
  /// ``AsyncOperation/turnHasCome(holdingKeys:request:)`` with the number of the latest request.
  func request(_ request: Int) -> KeyState {
    guard let owner else { return .waiting }
    let (phase, queue, slots) = owner.core.withLock { core in
      let slots = core.engine.map { (engine: $0, number: core.membership?.number ?? 0, flow: core.extras?.flow) }
      return (core.lifecycle.phase, core.queue, slots)
    }
    if let slots { return arrive(owner, at: .group(ObjectIdentifier(slots.engine)), request, slots) }
    // In a pause, an operation of a queue keeps its slot.
    if case .paused = phase { return arrive(owner, at: .none) }
    return arrive(owner, at: .queue(ObjectIdentifier(queue ?? self)), request)
  }

  func takeIfCalled() -> Bool {
    KeyRegistry.change { table, effects in ticket.map { table.takeIfCalled($0, &effects) } ?? false }
  }

  /// Takes all keys of an operation that has been started, or lets it wait for its turn. Returns whether it took them.
  func take() -> Bool { owner.map { arrive($0, at: .none).isHolding } ?? false }

  /// Takes all keys of a member that has been called because of its latest request, with a slot that its group has taken
  /// for it. Returns nil if it is not called any more. Otherwise the slot is used or returned.
  func takeWithSlot(_ request: Int, at priority: Int) -> KeyState? {
    KeyRegistry.change { table, effects in
      guard let ticket, let entry = table[ticket], entry.request == request, entry.state.isCalled else { return nil }
      // The table must not let a member wait that comes first in its group.
      table.setPriority(priority, lent: 0, of: ticket, &effects)
      table.callAgain(ticket, &effects)
      return table.state(of: ticket)
    }
  }

  /// Enters the table, or returns to the wait queues, unless another thread has, or it is too late.
  private func arrive(
    _ owner: AsyncOperation,
    at place: KeyPlace,
    _ request: Int = 0,
    _ new: (engine: GroupEngine, number: Int, flow: ExclusivityKey?)? = nil
  ) -> KeyState {
    _ = owner.ownWork
    for claim in claims where claim.policy == .drop { releaseFinishedHolders(of: claim) }
    let priority = owner.queuePriority
    let state = KeyRegistry.change { table, effects in
      if let ticket {
        table.comeBack(ticket, at: place, request: request, &effects)
      } else {
        slots = new
        let outer = table.tickets(around: self)
        table.enter(self, inside: outer, at: place, priority: priority.rawValue, request: request, &effects)
      }
      return ticket.flatMap { table.state(of: $0) } ?? .waiting
    }
    // A thread that changes or lends a priority before the operation has a ticket does not find it.
    let (newPriority, lent) = (owner.queuePriority, owner.core.withLock { $0.lent })
    if newPriority != priority || lent > 0 { priorityDidChange(to: newPriority, lent: lent) }
    return state
  }

  /// Leaves the keys or the wait queues, and keeps its place. A member gives back its slot with its keys. With the number of
  /// a request, does nothing if the turn has been requested again, or the operation has been started.
  func stepAside(request: Int? = nil) {
    KeyRegistry.change { table, effects in
      guard let ticket, let entry = table[ticket] else { return }
      if let request, entry.request != request || entry.place == KeyPlace.none { return }
      table.stepAside(ticket, &effects)
    }
  }

  /// Leaves the wait queues for good. An operation that was cancelled keeps the keys that it holds. One that has finished,
  /// or has been released without finishing, also leaves or lends its keys, and leaves its group.
  func leave(keepsKeys: Bool = false) {
    let former = KeyRegistry.change { table, effects in
      if !keepsKeys || ticket.flatMap({ table.state(of: $0) })?.isHolding != true {
        if let ticket { table.leave(ticket, lends: lends, &effects) } else { ticket = table.makeTicket() }
      }
      return keepsKeys ? nil : slots.take()
    }
    withExtendedLifetime(former) {}
  }

  /// Releases the keys of operations that have finished but are still notifying their observers.
  private func releaseFinishedHolders(of claim: KeyClaim) {
    while true {
      let owner = KeyRegistry.withTable { table in
        table.claimant(of: table.useID(of: claim, inside: table.tickets(around: self)))
      }
      guard let owner = owner as? KeyRequest, !owner.lends, owner.operation?.isFinished == true else { return }
      owner.leave()
    }
  }

  // MARK: KeyClaimant

  override var operation: AsyncOperation? { owner }

  override var name: String? { owner.flatMap { $0.isFinished ? nil : $0.displayName } }

  override var clock: any Clock<Duration> { owner?.clock ?? super.clock }

  override func takeSlot(_ rank: KeyEntry.Rank, isOffered: Bool) -> Bool {
    guard let slots else { return false }
    let rank = ReadyList.Rank(priority: rank.priority, ticket: slots.number)
    return slots.engine.state.withLock { state in
      guard state.schedule.takeSlot(at: rank, isOffered: isOffered) else { return false }
      let flow = slots.flow.map { state.schedule.ready.flows.index(of: $0) }
      state.schedule.ready.flows.begin(id, at: flow)
      return true
    }
  }

  override func slotIsOffered() {
    if let slots, slots.flow != nil { slots.engine.state.withLock { _ = $0.schedule.ready.flows.end(id) } }
  }

  override func returnSlot() { _ = slots?.engine.state.withLock { $0.schedule.ready.returnSlot() } }

  override func callWasWithdrawn() { _ = slots?.engine.state.withLock { $0.schedule.removeEntry(of: id) } }

  override func hasRoom(_ rank: KeyEntry.Rank, isOffered: Bool) -> Bool {
    guard let (engine, number, _) = slots else { return false }
    let rank = ReadyList.Rank(priority: rank.priority, ticket: number)
    return engine.state.withLock { state in
      guard state.schedule.hasRoom(at: rank, isOffered: isOffered) else { return false }
      let place = KeyPlace.group(ObjectIdentifier(engine))
      state.schedule.notifyWhenFull { KeyRegistry.change { $0.close(place, &$1) } }
      return true
    }
  }

  override func call(holdsKeys: Bool, request: Int) { owner?.turnHasCome(holdingKeys: holdsKeys, request: request) }

  override func cancel(with error: OperationError?) {
    if let error { owner?.cancel(with: error) } else { owner?.cancel() }
  }
}
