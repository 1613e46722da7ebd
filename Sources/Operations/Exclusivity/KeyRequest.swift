import Foundation

/// An operation's request for its keys. The table retains the request, but not the operation, so an operation that is
/// released withdraws its request.
final class KeyRequest: OperationTurn, KeyClaimant, @unchecked Sendable {
  private enum Phase {
    case idle
    /// The entry has left the table if a newer claimant replaces this one.
    case entered(KeyTicket)
    /// The operation will not execute, or has finished.
    case over
  }

  private(set) weak var operation: AsyncOperation?
  /// The claims, one for each key. Guarded by the operation's lock, and constant once the operation has been added.
  private(set) var claims: [KeyClaim] = []
  /// Guarded by the lock of the registry.
  private var phase = Phase.idle

  init(of operation: AsyncOperation) { self.operation = operation }

  func add(_ new: [KeyClaim]) { claims.add(new) }

  override var goal: String { (claims.count == 1 ? "the key " : "the keys ") + claims.map(\.key).quoted }

  // MARK: OperationTurn

  override func request(inside supervisor: OperationSupervisor?, isStarted: Bool) -> Bool {
    let enclosing = KeyRegistry.claimants(around: operation)
    let origin =
      supervisor.map { ObjectIdentifier($0) } ?? operation?.core.withLock { $0.queue }.map { ObjectIdentifier($0) }
    if claims.contains(where: { $0.policy == .drop }) { releaseFinishedHolders(inside: enclosing) }
    return KeyRegistry.change { table, effects in
      if case .idle = phase {
        let tickets = enclosing.compactMap(\.ticket)
        let ticket = table.enter(self, claims, inside: tickets, from: origin, isStarted: isStarted, &effects)
        phase = ticket.map { .entered($0) } ?? .over
        return ticket.map { table.state(of: $0) != .waiting } ?? false
      }
      if case .called? = ticket.flatMap({ table.state(of: $0) }) { return true }
      return false
    }
  }

  override func take(inside supervisor: OperationSupervisor?, waits: Bool) -> Bool {
    if let hasTaken = start(waits: waits) { return hasTaken }
    // The operation was started without a request, by hand or by Foundation's own method, or has given it up.
    let hasTurn = request(inside: supervisor, isStarted: waits)
    return waits ? hasTurn : start(waits: false) ?? false
  }

  /// Returns whether the operation has taken its keys, or nil if it has not requested them.
  private func start(waits: Bool) -> Bool? {
    KeyRegistry.change { table, effects in
      switch phase {
      case .idle: nil
      case .entered(let ticket): table.start(ticket, waits: waits, &effects)
      case .over: false
      }
    }
  }

  override func leave(_ departure: Departure) {
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

  /// Read under the lock of the registry.
  var ticket: KeyTicket? { if case .entered(let ticket) = phase { ticket } else { nil } }

  /// Releases the keys of operations that have finished but are still notifying their observers.
  private func releaseFinishedHolders(inside enclosing: [any KeyClaimant]) {
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

  var claimantName: String? { operation.flatMap { $0.isFinished ? nil : $0.displayName } }

  var clock: any Clock<Duration> { operation?.clock ?? ContinuousClock() }

  func call(holdsKeys: Bool) { operation?.turnHasCome(holdingKeys: holdsKeys) }

  func cancel(because refusal: KeyRegistry.Table.Refusal?) {
    guard let operation else { return }
    if let refusal {
      operation.cancel(with: OperationError(operation.quotedName, inside: "group", refusal))
    } else {
      operation.cancel()
    }
  }

  // MARK: Reading

  override var holders: [AsyncOperation] { KeyRegistry.holders(before: self) }

  var obstacles: [(obstacle: KeyRegistry.Table.Obstacle, limit: Int)] {
    KeyRegistry.withTable { table in ticket.map { table.obstacles(of: $0) } ?? [] }
  }

  /// The throttled key whose window the operation waits for.
  var throttledKey: ExclusivityKey? {
    KeyRegistry.withTable { table in
      guard let ticket, let entry = table[ticket], entry.state == .waiting else { return nil }
      return table.fullWindow(of: entry).map { claims[$0.claim].key }
    }
  }
}

extension OperationError {
  /// `outer` is what a deadlocked claimant runs inside: groups, or other tasks.
  init(_ name: String, inside outer: String, _ refusal: KeyRegistry.Table.Refusal) {
    func quoted(_ claimant: (any KeyClaimant)?) -> String {
      claimant?.claimantName.map { "“\($0)”" } ?? "another operation"
    }
    switch refusal {
    case .excluded(let key, let owner):
      self.init(.excluded, "\(name) did not run because \(quoted(owner)) has the key \(key.quoted).")
    case .replaced(let newer):
      self.init(.replaced, "\(name) was cancelled because \(quoted(newer)) replaces it under the same key.")
    case .deadlock(let key, let holder):
      self.init(
        .waitCycle,
        "\(name) did not run because of a deadlock: it waits for the key \(key.quoted), which \(quoted(holder)) holds, and "
          + "\(quoted(holder)) waits for a \(outer) around \(name). Let the \(outer)s request all of the keys."
      )
    }
  }
}
