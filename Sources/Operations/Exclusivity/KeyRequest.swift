import Foundation

/// An operation's request for its keys. The table retains the request, but not the operation, so an operation that is
/// released withdraws its request.
final class KeyRequest: StartPermit, @unchecked Sendable {
  private enum Phase {
    case idle
    /// The entry has left the table if a newer operation replaces this one.
    case entered(KeyRegistry.Table.Ticket)
    /// The operation will not execute, or has finished.
    case over
  }

  private(set) weak var operation: AsyncOperation?
  /// The claims, one for each key. Guarded by the operation's lock, and constant once the operation has been added.
  private(set) var claims: [KeyClaim] = []

  // Guarded by the lock of the registry.
  private var phase = Phase.idle
  /// Continues the operation, if it was started without its keys.
  private var resumption: (@Sendable () -> Void)?
  private var delay: (delay: KeyRegistry.Table.Delay, timer: ClockTimer)?

  init(of operation: AsyncOperation) { self.operation = operation }

  /// Adds claims. A key that is claimed twice counts once, with the smaller limit and the strongest policy.
  func add(_ new: [KeyClaim]) {
    if claims.isEmpty, new.count == 1 {
      claims = new
      return
    }
    var index = Dictionary(uniqueKeysWithValues: zip(claims.map(\.id), claims.indices))
    for claim in new {
      guard let position = index[claim.id] else {
        index[claim.id] = claims.count
        claims.append(claim)
        continue
      }
      claims[position].limit = min(claims[position].limit, claim.limit)
      claims[position].throttles += claim.throttles
      let policies = [claim.policy, claims[position].policy]
      claims[position].policy = [.drop, .replace, .latest].first(where: policies.contains) ?? .wait
    }
  }

  override var goal: String { (claims.count == 1 ? "the key " : "the keys ") + claims.map(\.key).quoted }

  // MARK: Requesting

  override func request(from supervisor: OperationSupervisor?, _ queue: OperationQueue?) -> Bool {
    let enclosing = enclosingRequests(from: supervisor)
    if claims.contains(where: { $0.policy == .drop }) { releaseFinishedHolders(inside: enclosing) }
    let host = supervisor.map { ObjectIdentifier($0) } ?? queue.map { ObjectIdentifier($0) }
    return KeyRegistry.change { table, effects in
      if case .idle = phase {
        let new = table.enter(self, claims, inside: enclosing.compactMap { $0.ticket }, host: host, &effects)
        phase = new.map { .entered($0) } ?? .over
      }
      guard let ticket, let state = table.entries[ticket]?.state else { return false }
      return !state.isWaiting
    }
  }

  override func acquire(from supervisor: OperationSupervisor?) -> Bool {
    let waits = supervisor == nil
    if let isHolding = start(waits: waits) { return isHolding }
    // The operation was started without a request, by hand or by Foundation's own method.
    _ = request(from: supervisor, nil)
    return start(waits: waits) ?? false
  }

  /// Returns whether the operation holds its keys, or nil if it has not requested them.
  private func start(waits: Bool) -> Bool? {
    KeyRegistry.change { table, effects in
      switch phase {
      case .idle: nil
      case .entered(let ticket): table.start(ticket, waits: waits, &effects)
      case .over: false
      }
    }
  }

  /// The requests of the enclosing groups, innermost first.
  private func enclosingRequests(from supervisor: OperationSupervisor?) -> [KeyRequest] {
    var requests: [KeyRequest] = []
    var next = supervisor?.supervisedGroup
    while let group = next {
      let (permit, supervisor) = group.core.withLock { ($0.extras?.permit, $0.supervisor) }
      if let request = permit as? KeyRequest { requests.append(request) }
      next = supervisor?.supervisedGroup
    }
    return requests
  }

  /// Releases the keys of operations that have finished but are still notifying their observers.
  private func releaseFinishedHolders(inside enclosing: [KeyRequest]) {
    for claim in claims where claim.policy == .drop {
      while true {
        let owner = KeyRegistry.withTable { table in
          table.claimant(of: table.queueID(of: claim, inside: enclosing.compactMap { $0.ticket }))
        }
        guard let owner, owner.operation?.isFinished == true else { break }
        owner.operationIsOver()
      }
    }
  }

  private var ticket: KeyRegistry.Table.Ticket? {
    if case .entered(let ticket) = phase { ticket } else { nil }
  }

  // MARK: Proceeding

  func resume() { KeyRegistry.withTable { _ in resumption.take() }?() }

  override func whenGranted(_ resumption: @escaping @Sendable () -> Void) {
    let isGranted = KeyRegistry.withTable { table in
      if let ticket, table.entries[ticket]?.state.isHolding == true { return true }
      self.resumption = resumption
      return false
    }
    if isGranted { resumption() }
  }

  func wait(for delay: KeyRegistry.Table.Delay) {
    guard let operation else { return }
    let rest = delay.start.elapsed.map { delay.interval - $0 } ?? delay.interval
    // The next operation may wait for a start that has left its window as well.
    if rest <= .zero { return Trampoline.run { KeyRegistry.change { $0.endDelay(delay, &$1) } } }
    let timer = ClockTimer()
    let (isNew, previous) = KeyRegistry.withTable { _ -> (Bool, ClockTimer?) in
      if ticket != delay.ticket || isWaiting(for: delay) { return (false, nil) }
      defer { self.delay = (delay, timer) }
      return (true, self.delay?.timer)
    }
    previous?.cancel()
    if isNew { timer.start(after: rest, on: operation.clock) { [weak self] in self?.timerDidFire(for: delay) } }
  }

  private func timerDidFire(for delay: KeyRegistry.Table.Delay) {
    let isCurrent = KeyRegistry.withTable { _ in
      guard isWaiting(for: delay) else { return false }
      self.delay = nil
      return true
    }
    // Clocks may fire too early.
    if isCurrent { wait(for: delay) }
  }

  private func isWaiting(for delay: KeyRegistry.Table.Delay) -> Bool {
    guard let current = self.delay?.delay else { return false }
    return current.start === delay.start && current.claim == delay.claim && current.throttle == delay.throttle
  }

  // MARK: Releasing

  // A queue may have started the operation before it gained the dependency.
  override func withdraw() { leave(.idle) { $0.host != nil } }

  override func operationWasCancelled() { leave(.over) { !$0.state.isHolding } }

  override func operationIsOver() { leave(.over) { _ in true } }

  private func leave(_ next: Phase, if leaves: (KeyRegistry.Table.Entry) -> Bool) {
    let remains = KeyRegistry.change { table, effects -> (ClockTimer?, (@Sendable () -> Void)?) in
      switch phase {
      case .idle: phase = next
      case .entered(let ticket):
        guard let entry = table.entries[ticket] else {
          phase = .over
          break
        }
        guard leaves(entry) else { return (nil, nil) }
        table.leave(ticket, &effects)
        phase = next
      case .over: break
      }
      defer { (delay, resumption) = (nil, nil) }
      return (delay?.timer, resumption)
    }
    remains.0?.cancel()
    withExtendedLifetime(remains) {}
  }

  // MARK: Reading

  var obstacles: [(obstacle: KeyRegistry.Table.Obstacle, limit: Int)] {
    KeyRegistry.withTable { table in ticket.map { table.obstacles(of: $0) } ?? [] }
  }

  typealias User = (operation: AsyncOperation, isHolder: Bool)

  static func users(of obstacle: KeyRegistry.Table.Obstacle) -> [User] {
    let users = KeyRegistry.withTable { $0.users(of: obstacle) }
    return users.compactMap { request, isHolder in request.operation.map { ($0, isHolder) } }
  }

  /// The throttled key whose window the operation waits for.
  var throttledKey: ExclusivityKey? {
    KeyRegistry.withTable { table in
      guard let ticket, let entry = table.entries[ticket], entry.state.isWaiting else { return nil }
      return table.fullWindow(of: entry).map { claims[$0.claim].key }
    }
  }
}

extension OperationError {
  static func excluded(_ operation: Operation, from key: ExclusivityKey, by other: Operation?) -> OperationError {
    let other = other?.quotedName ?? "another operation"
    return OperationError(.excluded, "\(operation.quotedName) did not run because \(other) has the key \(key.quoted).")
  }

  static func deadlock(of operation: Operation, waitingFor key: ExclusivityKey, heldBy holder: Operation?)
    -> OperationError
  {
    let (name, holder) = (operation.quotedName, holder?.quotedName ?? "another operation")
    return OperationError(
      .waitCycle,
      "\(name) did not run because of a deadlock: it waits for the key \(key.quoted), which \(holder) holds, and \(holder) "
        + "waits for a group around \(name). Let the groups request all of the keys."
    )
  }
}
