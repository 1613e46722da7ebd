import Foundation

/// A claimant of keys: what the table of keys needs to know of an operation or a task.
class KeyClaimant: Work, @unchecked Sendable {
  /// Nil until the claimant enters the table, or never will. Its entry may have left the table for good, for example
  /// because a newer claimant has replaced it. Guarded by the lock of the registry.
  final var ticket: KeyTicket?
  /// One for each key and interval. Constant once the claimant has entered the table.
  final var claims: [KeyClaim]
  /// That in the group of a member. Guarded as the ticket.
  final var room: GroupRoom?

  init(_ claims: [KeyClaim] = [], caller: Work? = nil) {
    self.claims = claims
    super.init(caller: caller)
  }

  final override var claimant: KeyClaimant? { self }

  /// The name in lists of claimants. Nil if the claimant has finished or has been released.
  var name: String? { nil }

  final var quotedName: String { name.map { "“\($0)”" } ?? "another operation" }

  /// Measures the intervals of throttled keys.
  var clock: any Clock<Duration> { ContinuousClock() }

  /// Nil if the claimant is a task, or if the operation has been released.
  var operation: AsyncOperation? { nil }

  // MARK: Under the lock of the table

  func didTakeKeys() {}

  // MARK: After the lock

  func call(isAnswered: Bool) {}

  func cancel(with error: OperationError?) {}

  final var waitsForKeys: Bool { KeyRegistry.withTable { $0.state(of: self) == .waiting } }

  /// For each key that the claimant waits for, what is in its way.
  final var obstacles: [(obstacle: KeyTable.Obstacle, limit: Int)] {
    KeyRegistry.withTable { table in ticket.map { table.obstacles(of: $0) } ?? [] }
  }

  /// Moves the claimant in the wait queues. A priority that a task has lent is passed on to the holders of its keys.
  final func priorityDidChange(to priority: Operation.QueuePriority, lent: UInt8) {
    KeyRegistry.change { table, effects in
      if let ticket { table.setPriority(priority.rawValue, lent: lent, of: ticket, &effects) }
    }
  }

  final var restraint: KeyRestraint? { KeyRegistry.withTable { table in ticket.flatMap { table.restraint(of: $0) } } }

  /// What keeps the claimant from its keys, as it appears in a sentence.
  final var awaited: String {
    if let restraint { return restraint.description }
    let keys = obstacles.compactMap { obstacle, _ -> String? in
      // A message of each of n claimants for n holders would take n² names.
      let (users, total) = KeyRegistry.withTable { $0.users(of: obstacle, atMost: 8) }
      if users.isEmpty { return nil }
      let names = users.map(\.claimant).listed(\.quotedName)
      let others = total > users.count ? " and \((total - users.count).others)" : ""
      return "the key \(obstacle.key.quoted)" + (obstacle.areHolders ? ", held by " : " behind ") + names + others
    }
    return keys.isEmpty ? "its keys" : keys.joined(separator: " and ")
  }
}

extension OperationError {
  init(_ claimant: KeyClaimant, _ refusal: KeyTable.Refusal) {
    let name = claimant.quotedName
    switch refusal {
    case .excluded(let key, let owner):
      self.init(.excluded, "\(name) did not run because \(owner.quotedName) has the key \(key.quoted).")
    case .replaced(let newer):
      self.init(.replaced, "\(name) was cancelled because \(newer.quotedName) replaces it under the same key.")
    case .stronger(let key, let holder):
      let holder = holder?.quotedName ?? "the work around it"
      self.init(
        .waitCycle,
        "\(name) did not run because its claim to the key \(key.quoted) is stronger than that of \(holder) around it. "
          + "Make this claim in \(holder)."
      )
    }
  }
}
