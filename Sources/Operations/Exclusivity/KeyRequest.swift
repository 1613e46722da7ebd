import Foundation

/// An operation's request for its keys. The table retains the request, but not the operation, so an operation that is
/// released withdraws its request. The claims are guarded by the operation's lock until the operation has been added.
final class KeyRequest: KeyClaimant, OperationTurn, @unchecked Sendable {
  private weak var owner: AsyncOperation?
  private let id: ObjectIdentifier
  /// Whether those that use the keys inside the operation keep them after its end.
  private let lends: Bool
  /// The slots of the group of a member, and the number of its arrival there, until its end. Guarded by the lock of the
  /// registry.
  private var slots: (engine: GroupEngine, number: Int)?

  init(of operation: AsyncOperation, lends: Bool) {
    owner = operation
    id = ObjectIdentifier(operation)
    self.lends = lends
    super.init()
  }

  var goal: String { (claims.count == 1 ? "the key " : "the keys ") + claims.map(\.key).quoted }

  // MARK: OperationTurn

  func request(_ request: Int) -> TurnAnswer {
    guard let owner else { return .waiting }
    let (supervisor, queue, number) = owner.core.withLock { ($0.supervisor, $0.queue, $0.membership?.number) }
    if let engine = supervisor as? GroupEngine {
      return arrive(at: .group(ObjectIdentifier(engine)), request, (engine, number ?? 0))
    }
    let starter: AnyObject = supervisor ?? (queue as AnyObject?) ?? self
    return arrive(at: .queue(ObjectIdentifier(starter)), request)
  }

  func take() -> Bool {
    let isTaken = KeyRegistry.change { table, effects -> Bool? in
      switch phase {
      case .entered(let ticket) where table.state(of: ticket) == .away: return nil
      case .entered(let ticket) where table.state(of: ticket)?.isHolding == false:
        table.start(ticket, &effects)
        return table.state(of: ticket)?.isHolding
      case .entered, .over: return false
      case .idle: return nil
      }
    }
    // The operation ends a pause in a queue, or was started by hand or by Foundation's own method.
    return isTaken ?? (arrive(at: .none) == .holding)
  }

  func takeWithSlot(_ request: Int) -> TurnAnswer? {
    KeyRegistry.change { table, effects in
      guard let ticket, let entry = table[ticket], entry.request == request, entry.state.isCalled else { return nil }
      table.callAgain(ticket, &effects)
      return table.state(of: ticket)?.answer ?? .waiting
    }
  }

  /// Enters the table, or returns to the wait queues, unless another thread has, or it is too late.
  private func arrive(
    at place: KeyPlace,
    _ request: Int = 0,
    _ new: (engine: GroupEngine, number: Int)? = nil
  ) -> TurnAnswer {
    let enclosing = KeyClaimant.around(owner)
    if claims.contains(where: { $0.policy == .drop }) { releaseFinishedHolders(inside: enclosing) }
    let (priority, lent) = (owner?.queuePriority ?? .normal, owner?.lentPriority)
    return KeyRegistry.change { table, effects in
      switch phase {
      case .idle:
        slots = new
        enter(&table, inside: enclosing, at: place, priority: priority, lent: lent, request: request, &effects)
      case .entered(let ticket): table.comeBack(ticket, at: place, request: request, &effects)
      case .over: break
      }
      return ticket.flatMap { table.state(of: $0)?.answer } ?? .waiting
    }
  }

  func leave(_ departure: TurnDeparture) {
    let former = KeyRegistry.change { table, effects in
      switch (departure, phase) {
      case (.newDependency, .idle), (.pause, .idle), (_, .over): break
      case (.newDependency(let request), .entered(let ticket)) where table[ticket]?.request != request: break
      // It has been started meanwhile.
      case (.newDependency, .entered(let ticket)) where table[ticket]?.place == KeyPlace.none: break
      case (.newDependency, .entered(let ticket)), (.pause, .entered(let ticket)): table.stepAside(ticket, &effects)
      case (.cancellation, .entered(let ticket)) where table.state(of: ticket)?.isHolding == true: break
      case (.cancellation, .entered(let ticket)), (.end, .entered(let ticket)):
        table.leave(ticket, lends: lends, &effects)
        if table.state(of: ticket) == nil { phase = .over }
      case (.cancellation, .idle), (.end, .idle): phase = .over
      }
      if case .end = departure { return slots.take() }
      return nil
    }
    withExtendedLifetime(former) {}
  }

  func priorityDidChange(to priority: Operation.QueuePriority, lent: TaskPriority?) {
    KeyRegistry.change { table, effects in
      if let ticket { table.setPriority(priority.rawValue, lent: lent, of: ticket, &effects) }
    }
  }

  /// Releases the keys of operations that have finished but are still notifying their observers.
  private func releaseFinishedHolders(inside enclosing: [KeyClaimant]) {
    for claim in claims where claim.policy == .drop {
      while true {
        let owner = KeyRegistry.withTable { table in
          table.claimant(of: table.useID(of: claim, inside: enclosing.compactMap(\.ticket)))
        }
        guard let owner = owner as? KeyRequest, !owner.lends, owner.operation?.isFinished == true else { break }
        owner.leave(.end)
      }
    }
  }

  // MARK: KeyClaimant

  override var operation: AsyncOperation? { owner }

  override var name: String? { owner.flatMap { $0.isFinished ? nil : $0.displayName } }

  override var clock: any Clock<Duration> { owner?.clock ?? super.clock }

  override func takeSlot(_ rank: KeyEntry.Rank, isOffered: Bool) -> Bool {
    guard let slots, let rank = readyRank(rank) else { return false }
    return slots.engine.state.withLock { $0.schedule.takeSlot(at: rank, isOffered: isOffered) }
  }

  private func readyRank(_ rank: KeyEntry.Rank) -> ReadyList.Rank? {
    guard let slots, let priority = Operation.QueuePriority(rawValue: rank.priority) else { return nil }
    return ReadyList.Rank(priority: priority, number: slots.number)
  }

  override func returnSlot() { slots?.engine.state.withLock { $0.schedule.returnSlot() } }

  override func callWasWithdrawn() { _ = slots?.engine.state.withLock { $0.schedule.removeEntry(of: id) } }

  override func hasRoom(_ rank: KeyEntry.Rank, isOffered: Bool) -> Bool {
    guard let engine = slots?.engine, let rank = readyRank(rank) else { return false }
    return engine.state.withLock { state in
      guard state.schedule.hasRoom(at: rank, isOffered: isOffered) else { return false }
      let place = KeyPlace.group(ObjectIdentifier(engine))
      state.schedule.notifyWhenFull { KeyRegistry.change { $0.close(place, &$1) } }
      return true
    }
  }

  override func call(holdsKeys: Bool, request: Int) { owner?.turnHasCome(holdingKeys: holdsKeys, request: request) }

  override func cancel(because refusal: KeyRegistry.Table.Refusal?) {
    guard let owner else { return }
    if let refusal {
      owner.cancel(with: OperationError(owner.quotedName, inside: "group", refusal))
    } else {
      owner.cancel()
    }
  }
}

extension KeyState {
  fileprivate var answer: TurnAnswer {
    switch self {
    case .away, .waiting: .waiting
    case .called: .called
    case .holding, .replaced, .lending: .holding
    }
  }
}
