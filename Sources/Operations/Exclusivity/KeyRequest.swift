import Foundation

/// An operation's request for its keys. The table retains the request, but not the operation, so an operation that is
/// released withdraws its request. The claims are guarded by the operation's lock until the operation has been added.
final class KeyRequest: KeyClaimant, OperationTurn, @unchecked Sendable {
  private weak var owner: AsyncOperation?

  init(of operation: AsyncOperation) {
    owner = operation
    super.init()
  }

  var goal: String { (claims.count == 1 ? "the key " : "the keys ") + claims.map(\.key).quoted }

  // MARK: OperationTurn

  func request() -> Bool { changeOrEnter { table, ticket, _ in table.isCalled(ticket) } }

  func take(waits: Bool) -> Bool {
    let result = KeyRegistry.change { table, effects -> Bool? in
      if case .idle = phase { return nil }
      return ticket.map { table.start($0, waits: waits, &effects) } ?? false
    }
    // The operation was started without a request, by hand or by Foundation's own method, or has given it up.
    return result ?? changeOrEnter { table, ticket, effects in table.start(ticket, waits: waits, &effects) }
  }

  /// Calls `body` under the lock of the registry. Enters the table first, unless another thread has, or it is too late.
  private func changeOrEnter(
    _ body: (inout KeyRegistry.Table, KeyTicket, inout [KeyRegistry.Table.Effect]) -> Bool
  ) -> Bool {
    let enclosing = KeyClaimant.around(owner)
    if claims.contains(where: { $0.policy == .drop }) { releaseFinishedHolders(inside: enclosing) }
    let origin = owner?.core.withLock { core in
      core.supervisor.map { ObjectIdentifier($0) } ?? core.queue.map { ObjectIdentifier($0) }
    }
    return KeyRegistry.change { table, effects in
      if case .idle = phase { enter(&table, inside: enclosing, from: origin ?? nil, isStarted: false, &effects) }
      return ticket.map { body(&table, $0, &effects) } ?? false
    }
  }

  func leave(_ departure: TurnDeparture) {
    KeyRegistry.change { table, effects in
      let next = departure == .newDependency || departure == .pause ? Phase.idle : .over
      switch phase {
      case .idle: phase = next
      case .over: break
      case .entered(let ticket):
        guard let entry = table[ticket] else {
          phase = .over
          return
        }
        switch departure {
        case .newDependency where entry.isStarted, .cancellation where entry.state.isHolding: return
        case .newDependency, .pause, .cancellation, .end: break
        }
        table.leave(ticket, &effects)
        phase = next
      }
    }
  }

  /// Releases the keys of operations that have finished but are still notifying their observers.
  private func releaseFinishedHolders(inside enclosing: [KeyClaimant]) {
    for claim in claims where claim.policy == .drop {
      while true {
        let owner = KeyRegistry.withTable { table in
          table.claimant(of: table.useID(of: claim, inside: enclosing.compactMap(\.ticket)))
        }
        guard let owner = owner as? KeyRequest, owner.operation?.isFinished == true else { break }
        owner.leave(.end)
      }
    }
  }

  // MARK: KeyClaimant

  override var operation: AsyncOperation? { owner }

  override var name: String? { owner.flatMap { $0.isFinished ? nil : $0.displayName } }

  override var clock: any Clock<Duration> { owner?.clock ?? super.clock }

  override func call(holdsKeys: Bool) { owner?.turnHasCome(holdingKeys: holdsKeys) }

  override func cancel(because refusal: KeyRegistry.Table.Refusal?) {
    guard let owner else { return }
    if let refusal {
      owner.cancel(with: OperationError(owner.quotedName, inside: "group", refusal))
    } else {
      owner.cancel()
    }
  }
}
