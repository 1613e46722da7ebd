import Foundation

/// An operation's request for its keys.
///
/// The table retains the request, but not the operation. An operation that is released withdraws its request.
final class KeyRequest: StartPermit, @unchecked Sendable {
  /// One key that the operation needs.
  struct Claim {
    let domain: ExclusivityDomain
    let key: ExclusivityKey
    var limit = Int.max
    var throttles: [KeyThrottle] = []
    var policy = ExclusivityPolicy.wait
  }

  private enum Phase {
    case idle
    case entered(KeyRegistry.Table.Ticket)
    /// The operation has finished, or will not execute.
    case over
  }

  private(set) weak var operation: AsyncOperation?
  /// The claims, one for each key. Guarded by the operation's lock, and constant once the operation has been added.
  private(set) var claims: [Claim] = []

  // Guarded by the lock of the registry.
  private var phase = Phase.idle
  /// The closure that continues an operation that was started without its keys.
  private var resumption: (@Sendable () -> Void)?
  private var timer: ClockTimer?
  /// The serial number of the start for which ``timer`` is set.
  private var delaySerial: Int?

  init(of operation: AsyncOperation) { self.operation = operation }

  /// Adds a claim. A key that is claimed twice counts once, with the smaller limit and the stronger policy.
  func add(_ claim: Claim) {
    guard let index = claims.firstIndex(where: { $0.domain === claim.domain && $0.key == claim.key }) else {
      return claims.append(claim)
    }
    claims[index].limit = min(claims[index].limit, claim.limit)
    claims[index].throttles += claim.throttles
    if claim.policy.strength > claims[index].policy.strength { claims[index].policy = claim.policy }
  }

  override var goal: String { (claims.count == 1 ? "the key " : "the keys ") + claims.map(\.key).quoted }

  // MARK: Requesting

  /// The outcome of a request. The caller acts on it after releasing the lock.
  private struct Answer {
    var isGranted = false
    var startTime: StartTime?
    var replaced: [KeyRequest] = []
    var taken: (key: ExclusivityKey, by: KeyRequest?)?
  }

  override func request() -> Bool { request(isStarted: false, startsNow: false) }

  override func acquire(isStarted: Bool) -> Bool { request(isStarted: isStarted, startsNow: true) }

  private func request(isStarted: Bool, startsNow: Bool) -> Bool {
    guard let operation else { return false }
    let enclosing = enclosingRequests(of: operation)
    if claims.contains(where: { $0.policy == .drop }) { releaseFinishedHolders(inside: enclosing) }
    let host = isStarted ? nil : operation.core.withLock { $0.host }
    let answer = KeyRegistry.change { table, effects -> Answer in
      switch phase {
      case .over: return Answer()
      case .entered(let ticket):
        let isGranted = startsNow && table.start(ticket, waits: isStarted, &effects)
        return Answer(isGranted: isGranted, startTime: isGranted ? table.startTime(of: ticket) : nil)
      case .idle: return enter(&table, &effects, inside: enclosing.compactMap(\.ticket), host, startsNow: startsNow)
      }
    }
    answer.startTime?.set(on: operation.clock)
    for other in answer.replaced { other.operation?.cancel() }
    if let (key, holder) = answer.taken {
      operation.cancel(with: OperationError.excluded(operation, from: key, by: holder?.operation))
    }
    return answer.isGranted
  }

  /// Applies the policies, and enters the request in the table unless it is refused.
  private func enter(
    _ table: inout KeyRegistry.Table,
    _ effects: inout KeyRegistry.Table.Effects,
    inside enclosing: [KeyRegistry.Table.Ticket],
    _ host: ObjectIdentifier?,
    startsNow: Bool
  ) -> Answer {
    let demands = claims.map { claim in
      let queue = table.queueID(of: claim.key, in: claim.domain, inside: enclosing)
      return KeyRegistry.Table.Demand(queue: queue, limit: claim.limit, throttles: claim.throttles)
    }
    for (claim, demand) in zip(claims, demands) where claim.policy == .drop {
      guard let other = table.first(in: demand.queue) else { continue }
      phase = .over
      return Answer(taken: (claim.key, table.entries[other]?.claimant))
    }
    var answer = Answer()
    let replacing = zip(claims, demands).filter { $0.0.policy == .replace }.map(\.1.queue)
    if !replacing.isEmpty {
      let replaced = table.tickets(in: replacing)
      table.replace(replaced)
      answer.replaced = replaced.reversed().compactMap { table.entries[$0]?.claimant }
    }
    let applicant = KeyRegistry.Table.Applicant(claimant: self, demands: demands, enclosing: enclosing, host: host)
    let ticket = table.enter(applicant, &effects)
    phase = .entered(ticket)
    let state = table.entries[ticket]?.state
    if state == .permitted, startsNow { _ = table.start(ticket, waits: host == nil, &effects) }
    answer.isGranted = state == .holding || state == .permitted
    if startsNow || state == .holding { answer.startTime = table.startTime(of: ticket) }
    return answer
  }

  /// The requests of the enclosing groups, innermost first.
  private func enclosingRequests(of operation: AsyncOperation) -> [KeyRequest] {
    var requests: [KeyRequest] = []
    var next = operation.core.withLock { $0.supervisor }?.supervisedGroup
    while let group = next {
      let (permit, supervisor) = group.core.withLock { ($0.extras?.permit, $0.supervisor) }
      if let request = permit as? KeyRequest { requests.append(request) }
      next = supervisor?.supervisedGroup
    }
    return requests
  }

  /// Releases the keys of holders that have finished but are still notifying their observers.
  private func releaseFinishedHolders(inside enclosing: [KeyRequest]) {
    let holders = KeyRegistry.read { table in
      let tickets = enclosing.compactMap(\.ticket)
      return claims.flatMap { table.holders(in: table.queueID(of: $0.key, in: $0.domain, inside: tickets)) }
        .compactMap { table.entries[$0]?.claimant }
    }
    for request in holders where request.operation?.isFinished == true { request.leave() }
  }

  /// The ticket of the request in the table. Guarded by the lock of the registry.
  private var ticket: KeyRegistry.Table.Ticket? {
    if case .entered(let ticket) = phase { ticket } else { nil }
  }

  // MARK: Proceeding

  /// Continues the operation, which has been granted its keys or the permit to start.
  func proceed(isPermit: Bool) {
    guard let operation else { return }
    if isPermit { return operation.permitIsGranted() }
    let (resumption, startTime) = KeyRegistry.read { table in
      defer { self.resumption = nil }
      return (self.resumption, ticket.flatMap { table.startTime(of: $0) })
    }
    startTime?.set(on: operation.clock)
    resumption?()
  }

  override func whenGranted(_ resumption: @escaping @Sendable () -> Void) {
    let isGranted = KeyRegistry.read { table in
      if ticket.flatMap({ table.entries[$0]?.state }) == .holding { return true }
      self.resumption = resumption
      return false
    }
    if isGranted { resumption() }
  }

  /// Waits until the start of a delay has left its window.
  func wait(for delay: KeyRegistry.Table.Delay) {
    guard let operation else { return }
    let interval = delay.window.throttle.interval
    let rest = delay.start.time.elapsed.map { interval - $0 } ?? interval
    if rest <= .zero { return KeyRegistry.change { $0.endDelay(delay, &$1) } }
    let isNew = KeyRegistry.read { _ in
      if delaySerial == delay.start.serial { return false }
      delaySerial = delay.start.serial
      return true
    }
    guard isNew else { return }
    let timer = ClockTimer.start(after: rest, on: operation.clock) { [weak self] in
      guard let self else { return }
      KeyRegistry.read { _ in delaySerial = nil }
      wait(for: delay)
    }
    let superfluous = KeyRegistry.read { _ in
      defer { if ticket != nil { self.timer = timer } }
      return ticket == nil ? timer : self.timer
    }
    superfluous?.cancel()
  }

  /// Cancels the operation, because it would wait forever for a key.
  func refuse(_ refusal: KeyRegistry.Table.Refusal) {
    guard let operation else { return }
    let holder = refusal.holder?.operation
    operation.cancel(with: OperationError.deadlock(of: operation, waitingFor: refusal.key, heldBy: holder))
  }

  // MARK: Releasing

  override func withdraw() -> Bool {
    KeyRegistry.change { table, effects in
      guard let ticket, table.entries[ticket]?.state == .waiting else { return false }
      phase = .idle
      table.leave(ticket, &effects)
      return true
    }
  }

  override func operationWasCancelled() { leave(unlessHolding: true) }

  override func operationIsOver() { leave() }

  private func leave(unlessHolding: Bool = false) {
    let (timer, resumption) = KeyRegistry.change { table, effects in
      let isHolding = unlessHolding && ticket.flatMap { table.entries[$0]?.state } == .holding
      if !isHolding {
        let old = ticket
        phase = .over
        if let old { table.leave(old, &effects) }
      }
      defer { (self.timer, self.resumption) = (nil, nil) }
      return (self.timer, self.resumption)
    }
    timer?.cancel()
    withExtendedLifetime(resumption) {}
  }

  // MARK: Reading

  /// An operation that keeps this one from a key.
  struct Obstacle {
    let key: ExclusivityKey
    let limit: Int
    let operation: AsyncOperation?
    /// Whether the operation holds the key. Otherwise it precedes this operation in the wait queue, or the key is
    /// reserved for it.
    let isHolder: Bool
  }

  /// The operations that this one waits for. Empty if it holds its keys or has not requested them.
  var obstacles: [Obstacle] {
    let found = KeyRegistry.read { table in
      (ticket.map { table.obstacles(of: $0) } ?? []).map { ($0, table.entries[$0.ticket]?.claimant) }
    }
    return found.map { obstacle, claimant in
      Obstacle(
        key: obstacle.key,
        limit: obstacle.limit,
        operation: claimant?.operation,
        isHolder: obstacle.isHolder
      )
    }
  }

  /// The throttled key whose window the operation waits for.
  var throttledKey: ExclusivityKey? {
    KeyRegistry.read { table in
      guard delaySerial != nil, let ticket, table.entries[ticket]?.state == .waiting else { return nil }
      return claims.first { !$0.throttles.isEmpty }?.key
    }
  }
}

extension ExclusivityPolicy {
  /// The precedence of a policy if one key has several policies.
  fileprivate var strength: Int {
    switch self {
    case .wait: 0
    case .replace: 1
    case .drop: 2
    }
  }
}

extension OperationCore {
  /// The queue or group that starts the operation.
  fileprivate var host: ObjectIdentifier? {
    if let supervisor { return ObjectIdentifier(supervisor) }
    return queue.map { ObjectIdentifier($0) }
  }
}

extension OperationError {
  /// Returns the error of an operation with the policy `.drop` whose key is in use.
  static func excluded(_ operation: Operation, from key: ExclusivityKey, by other: Operation?) -> OperationError {
    let other = other?.quotedName ?? "another operation"
    return OperationError(.excluded, "\(operation.quotedName) did not run because \(other) has the key \(key.quoted).")
  }

  /// Returns the error of a member that would wait forever for a key.
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
