import Foundation

/// An operation's request for its keys. The table retains the request, but not the operation, so an operation that is
/// released withdraws its request. The claims are guarded by the operation's lock until the operation has been added.
final class KeyRequest: KeyClaimant, @unchecked Sendable {
  private weak var owner: AsyncOperation?
  /// Whether those that use the keys inside the operation keep them after its end.
  private let lends: Bool

  init(of operation: AsyncOperation, lends: Bool) {
    owner = operation
    self.lends = lends
    super.init()
  }

  var goal: String {
    let keys = claims.filter { $0.interval == nil }.map(\.key)
    return (keys.count == 1 ? "the key " : "the keys ") + keys.quoted
  }

  // MARK: An operation of a queue, without a lock held

  /// Enters the wait queues, or returns to them. ``AsyncOperation/keysAreFree(areHeld:)`` reports keys freed later.
  func enterWaitQueues() -> KeyState {
    guard let owner else { return .waiting }
    let (phase, queue) = owner.core.withLock { ($0.lifecycle.phase, $0.queue) }
    // In a pause, the operation keeps its slot.
    if case .paused = phase { return arrive(owner, at: .started) }
    return arrive(owner, at: .queue(ObjectIdentifier(queue ?? self)))
  }

  func takeIfCalled() -> Bool {
    KeyRegistry.change { table, effects in ticket.map { table.takeIfCalled($0, &effects) } ?? false }
  }

  /// Takes all keys of an operation that has been started, or lets it wait for its turn. Returns whether it took them.
  func take() -> Bool { owner.map { arrive($0, at: .started).isHolding } ?? false }

  private func arrive(_ owner: AsyncOperation, at place: KeyPlace) -> KeyState {
    var state: KeyState?
    arrive(owner) { priority in
      state = KeyRegistry.change { table, effects in
        enter(&table, at: place, priority, &effects)
        return table.state(of: self)
      }
    }
    return state ?? .waiting
  }

  func leave(forGood: Bool, unlessHeld: Bool = false) {
    KeyRegistry.change { table, effects in leave(&table, forGood: forGood, unlessHeld: unlessHeld, &effects) }
  }

  // MARK: Any operation

  /// Lets `body` enter the wait queues, by the priority of the operation. Returns whether the priority changed meanwhile.
  @discardableResult
  func arrive(_ owner: AsyncOperation, _ body: (Operation.QueuePriority) -> Void) -> Bool {
    _ = owner.ownWork
    for claim in claims where claim.policy == .drop { releaseFinishedHolders(of: claim) }
    let priority = owner.queuePriority
    body(priority)
    // A thread that changes or lends a priority before the operation has a ticket does not find it.
    let (newPriority, lent) = (owner.queuePriority, owner.core.withLock { $0.lent })
    if newPriority != priority || lent > 0 { priorityDidChange(to: newPriority, lent: lent) }
    return newPriority != priority
  }

  /// Enters the table, or returns to the wait queues, unless another thread has, or it is too late.
  func enter(
    _ table: inout KeyTable,
    at place: KeyPlace,
    _ priority: Operation.QueuePriority,
    number: Int = 0,
    _ effects: inout [KeyTable.Effect]
  ) {
    if let ticket { return table.comeBack(ticket, at: place, &effects) }
    let outer = table.tickets(around: self)
    table.enter(self, inside: outer, at: place, priority: priority.rawValue, number: number, &effects)
  }

  /// Leaves the wait queues or the keys, and keeps its number unless it leaves for good, because it was cancelled, has
  /// finished, or has been released. `unlessHeld` keeps the keys of an operation that has been started, or is about to be.
  func leave(_ table: inout KeyTable, forGood: Bool, unlessHeld: Bool, _ effects: inout [KeyTable.Effect]) {
    guard let ticket, let state = table.state(of: ticket) else {
      if forGood, ticket == nil { ticket = table.makeTicket() }
      return
    }
    if unlessHeld, state.isHolding || (!forGood && table.entries[ticket.place].place == .started) { return }
    if forGood { table.leave(ticket, lends: lends, &effects) } else { table.stepAside(ticket, &effects) }
  }

  /// Releases the keys of operations that have finished but are still notifying their observers.
  private func releaseFinishedHolders(of claim: KeyClaim) {
    while true {
      let owner = KeyRegistry.withTable { table in
        table.claimant(of: table.useID(of: claim, inside: table.tickets(around: self)))
      }
      guard let owner = owner as? KeyRequest, !owner.lends, owner.operation?.isFinished == true else { return }
      owner.operation?.leaveKeys(owner, forGood: true)
    }
  }

  // MARK: KeyClaimant

  override var operation: AsyncOperation? { owner }

  override var name: String? { owner.flatMap { $0.isFinished ? nil : $0.displayName } }

  override var clock: any Clock<Duration> { owner?.clock ?? super.clock }

  override func call(isAnswered: Bool) {
    guard let owner else { return }
    if room == nil { return owner.keysAreFree(areHeld: isAnswered) }
    if isAnswered { return owner.noteKeyWait() }
    // In a trampoline, because others may be called if the group has no slot, and so on.
    if let engine = owner.core.withLock({ $0.engine }) { Trampoline.run { engine.wasCalled(owner, self) } }
  }

  override func cancel(with error: OperationError?) {
    if let error { owner?.cancel(with: error) } else { owner?.cancel() }
  }
}
