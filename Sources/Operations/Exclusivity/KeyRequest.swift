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

    var id: KeyQueue.ID { KeyQueue.ID(domain: domain, key: key) }
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
  /// The delay that the operation waits for, and its timer.
  private var delay: (window: KeyRegistry.Table.Window, serial: Int, timer: ClockTimer)?

  init(of operation: AsyncOperation) { self.operation = operation }

  /// Adds claims. A key that is claimed twice counts once, with the smaller limit and the stronger policy.
  func add(_ new: [Claim]) {
    // A list of many keys is searched through an index.
    var index: [KeyQueue.ID: Int] = [:]
    if new.count > 8 { for (position, claim) in claims.enumerated() { index[claim.id] = position } }
    for claim in new {
      let position = new.count > 8 ? index[claim.id] : claims.firstIndex { $0.id == claim.id }
      guard let position else {
        if new.count > 8 { index[claim.id] = claims.count }
        claims.append(claim)
        continue
      }
      claims[position].limit = min(claims[position].limit, claim.limit)
      claims[position].throttles += claim.throttles
      if claim.policy.strength > claims[position].policy.strength { claims[position].policy = claim.policy }
    }
  }

  override var goal: String { (claims.count == 1 ? "the key " : "the keys ") + claims.map(\.key).quoted }

  // MARK: Requesting

  /// The outcome of a request. The caller acts on it after releasing the lock.
  private struct Answer {
    var isGranted = false
    var startTime: StartTime?
    var replaced: [KeyRequest] = []
    var taken: (key: ExclusivityKey, by: KeyRequest)?
  }

  override func request() -> Bool { request(isStarting: false, waits: false) }

  override func acquire(waits: Bool) -> Bool { request(isStarting: true, waits: waits) }

  /// Requests the keys, or the permit to start.
  ///
  /// - Parameters:
  ///   - isStarting: Whether the operation is about to execute, so that it holds the keys when they are granted.
  ///   - waits: Whether it stays started while it waits for the keys.
  private func request(isStarting: Bool, waits: Bool) -> Bool {
    guard let operation else { return false }
    // An operation that starts has usually entered the table before.
    let early = isStarting ? advance(isStarting: true, waits: waits, entering: nil) : nil
    let answer = early ?? enter(operation, isStarting: isStarting, waits: waits)
    guard let answer else { return false }
    answer.startTime?.set(on: operation.clock)
    for other in answer.replaced { other.operation?.cancel() }
    if let (key, holder) = answer.taken {
      operation.cancel(with: OperationError.excluded(operation, from: key, by: holder.operation))
    }
    return answer.isGranted
  }

  private func enter(_ operation: AsyncOperation, isStarting: Bool, waits: Bool) -> Answer? {
    let enclosing = enclosingRequests(of: operation)
    if claims.contains(where: { $0.policy == .drop }) { releaseFinishedHolders(inside: enclosing) }
    let host = waits ? nil : operation.core.withLock { $0.host }
    return advance(isStarting: isStarting, waits: waits, entering: (enclosing, host))
  }

  /// Advances the request in the table.
  ///
  /// - Parameter place: The requests around this one, and the queue or group that starts the operation. Needed to enter
  ///   the table.
  /// - Returns: Nil if the request has not entered the table and `place` is nil.
  private func advance(
    isStarting: Bool,
    waits: Bool,
    entering place: (enclosing: [KeyRequest], host: ObjectIdentifier?)?
  ) -> Answer? {
    KeyRegistry.change { table, effects in
      var answer = Answer()
      if case .idle = phase {
        guard let place else { return nil }
        answer = enter(&table, &effects, inside: place.enclosing.compactMap(\.ticket), place.host)
      }
      guard let ticket else { return answer }
      if isStarting {
        answer.isGranted = table.start(ticket, waits: waits, &effects)
      } else {
        answer.isGranted = table.entries[ticket]?.state != .waiting
      }
      if answer.isGranted { answer.startTime = table.entries[ticket]?.startTime }
      return answer
    }
  }

  /// Applies the policies, and enters the request in the table unless it is refused.
  private func enter(
    _ table: inout KeyRegistry.Table,
    _ effects: inout KeyRegistry.Table.Effects,
    inside enclosing: [KeyRegistry.Table.Ticket],
    _ host: ObjectIdentifier?
  ) -> Answer {
    let demands = claims.map { claim in
      let queue = table.queueID(of: claim.key, in: claim.domain, inside: enclosing)
      return KeyRegistry.Table.Demand(queue: queue, limit: claim.limit, throttles: claim.throttles)
    }
    var answer = Answer()
    for (claim, demand) in zip(claims, demands) where claim.policy == .drop {
      guard let other = table.claimant(of: demand.queue) else { continue }
      phase = .over
      answer.taken = (claim.key, other)
      return answer
    }
    let replacing = zip(claims, demands).filter { $0.0.policy == .replace }.map(\.1.queue)
    if !replacing.isEmpty {
      let replaced = table.replaceable(in: replacing)
      table.replace(replaced)
      answer.replaced = replaced.reversed().compactMap { table.entries[$0]?.claimant }
    }
    let applicant = KeyRegistry.Table.Applicant(claimant: self, demands: demands, enclosing: enclosing, host: host)
    phase = .entered(table.enter(applicant, &effects))
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

  /// Releases the keys of holders that have finished but are still notifying their observers, up to a holder that has
  /// not finished.
  private func releaseFinishedHolders(inside enclosing: [KeyRequest]) {
    for claim in claims where claim.policy == .drop {
      while true {
        let holder = KeyRegistry.withTable { table in
          table.holder(of: table.queueID(of: claim.key, in: claim.domain, inside: enclosing.compactMap(\.ticket)))
        }
        guard let holder, holder.operation?.isFinished == true else { break }
        holder.leave()
      }
    }
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
    let (resumption, startTime) = KeyRegistry.withTable { table in
      (self.resumption.take(), ticket.flatMap { table.entries[$0]?.startTime })
    }
    startTime?.set(on: operation.clock)
    resumption?()
  }

  override func whenGranted(_ resumption: @escaping @Sendable () -> Void) {
    let isGranted = KeyRegistry.withTable { table in
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
    let timer = ClockTimer()
    let (isNew, previous) = KeyRegistry.withTable { _ -> (Bool, ClockTimer?) in
      if ticket != delay.ticket || isWaiting(for: delay) { return (false, nil) }
      defer { self.delay = (delay.window, delay.start.serial, timer) }
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

  /// Whether a timer is set for the delay. Guarded by the lock of the registry.
  private func isWaiting(for delay: KeyRegistry.Table.Delay) -> Bool {
    self.delay.map { $0.window == delay.window && $0.serial == delay.start.serial } ?? false
  }

  /// Cancels the operation, because it would wait forever for a key.
  func refuse(_ refusal: KeyRegistry.Table.Refusal) {
    guard let operation else { return }
    let holder = refusal.holder?.operation
    operation.cancel(with: OperationError.deadlock(of: operation, waitingFor: refusal.key, heldBy: holder))
  }

  // MARK: Releasing

  override func withdraw() {
    // A queue may have started the operation before it gained the dependency.
    leave { $0?.isStarted == true || $0?.state == .holding ? nil : .idle }
  }

  override func operationWasCancelled() { leave { $0?.state == .holding ? nil : .over } }

  override func operationIsOver() { leave() }

  /// Leaves the table.
  ///
  /// - Parameter next: Returns the phase that follows, or nil if the request stays in the table.
  private func leave(_ next: (KeyRegistry.Table.Entry?) -> Phase? = { _ in .over }) {
    let (timer, resumption) = KeyRegistry.change { table, effects -> (ClockTimer?, (@Sendable () -> Void)?) in
      guard let next = next(ticket.flatMap { table.entries[$0] }) else { return (nil, nil) }
      if let ticket { table.leave(ticket, &effects) }
      if case .over = phase {} else { phase = next }
      defer { (delay, self.resumption) = (nil, nil) }
      return (delay?.timer, self.resumption)
    }
    timer?.cancel()
    withExtendedLifetime(resumption) {}
  }

  // MARK: Reading

  /// What keeps the operation from its keys. Empty if it holds them or has not requested them.
  var obstacles: [(obstacle: KeyRegistry.Table.Obstacle, limit: Int)] {
    KeyRegistry.withTable { table in ticket.map { table.obstacles(of: $0) } ?? [] }
  }

  typealias User = (operation: AsyncOperation, isHolder: Bool)

  /// Returns the operations that are an obstacle. One that holds no key precedes others in its wait queue, or the key
  /// is reserved for it.
  static func users(of obstacle: KeyRegistry.Table.Obstacle) -> [User] {
    let found = KeyRegistry.withTable { table in
      table.users(of: obstacle).map { (table.entries[$0.ticket]?.claimant, $0.isHolder) }
    }
    return found.compactMap { request, isHolder in request?.operation.map { ($0, isHolder) } }
  }

  /// The throttled key whose window the operation waits for.
  var throttledKey: ExclusivityKey? {
    KeyRegistry.withTable { table in
      guard let ticket, table.entries[ticket]?.state == .waiting, table.fullWindow(of: ticket) != nil else {
        return nil
      }
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
