import Foundation

/// The keys that an operation holds while it executes, and how far it has come with them.
///
/// It belongs to the operation and goes with it, and so does what it holds.
final class KeyRequest: StartPermit, @unchecked Sendable {
  struct Claim {
    let domain: ExclusivityDomain
    let key: ExclusivityKey
    var limit = Int.max
    var throttles: [KeyThrottle] = []
    var policy = ExclusivityPolicy.wait
  }

  private enum Phase {
    case idle
    case standing(KeyRing.Table.Ticket)
    /// The operation has finished, or does not execute.
    case over
  }

  enum Answer {
    case granted
    case waits
    case refused
  }

  private(set) weak var operation: AsyncOperation?
  /// Each key once. Changed under the lock of the operation, and never again when that has been added somewhere.
  private(set) var claims: [Claim] = []

  // Guarded by the lock of the table.
  private var phase = Phase.idle
  /// How the operation goes on that has been started, and waits for its keys.
  private var resumption: (@Sendable () -> Void)?
  /// The start that the timer is about.
  private var delaySerial: Int?
  private var timer: ClockTimer?

  init(of operation: AsyncOperation) { self.operation = operation }

  deinit { leave() }

  /// A key that is named twice counts once.
  func add(_ claim: Claim) {
    guard let index = claims.firstIndex(where: { $0.domain === claim.domain && $0.key == claim.key }) else {
      return claims.append(claim)
    }
    claims[index].limit = min(claims[index].limit, claim.limit)
    claims[index].throttles += claim.throttles
    if claim.policy.rank > claims[index].policy.rank { claims[index].policy = claim.policy }
  }

  override var goal: String { (claims.count == 1 ? "the key " : "the keys ") + claims.map(\.key).quoted }

  // MARK: Requesting

  override func request() -> Bool { ask(isInHand: false, begins: false) == .granted }

  override func acquire(isInHand: Bool) -> Bool { ask(isInHand: isInHand, begins: true) == .granted }

  /// - Parameters:
  ///   - isInHand: The operation has been started, and waits in its slot if it has to.
  ///   - begins: It is about to execute.
  private func ask(isInHand: Bool, begins: Bool) -> Answer {
    guard let operation else { return .refused }
    let isNew = KeyRing.look { _ in if case .idle = phase { true } else { false } }
    let outer = isNew ? requestsAround(operation) : []
    if isNew, claims.contains(where: { $0.policy == .drop }) { releaseFinished(outer) }
    let home = isInHand ? nil : operation.core.withLock { $0.home }
    var replaced: [KeyRing.WeakRequest] = []
    var taken: (key: ExclusivityKey, by: KeyRing.WeakRequest?)?
    let (answer, start) = KeyRing.change { table, effects -> (Answer, StartTime?) in
      switch phase {
      case .over: return (.refused, nil)
      case .standing(let ticket):
        guard begins else { return (.waits, nil) }
        let isHolding = table.arrive(ticket, waits: isInHand, &effects)
        return (isHolding ? .granted : .waits, isHolding ? table.startTime(of: ticket) : nil)
      case .idle:
        let tickets = outer.compactMap(\.ticket)
        let demands = claims.map { claim in
          KeyRing.Table.Demand(
            place: table.place(of: claim.key, in: claim.domain, inside: tickets),
            limit: claim.limit,
            throttles: claim.throttles
          )
        }
        for (claim, demand) in zip(claims, demands) where claim.policy == .drop {
          guard let other = table.first(at: demand.place) else { continue }
          phase = .over
          taken = (claim.key, table.entries[other]?.claimant)
          return (.refused, nil)
        }
        let places = zip(claims, demands).filter { $0.0.policy == .replace }.map(\.1.place)
        if !places.isEmpty {
          replaced = table.tickets(at: places).reversed().compactMap { table.entries[$0]?.claimant }
        }
        let applicant = KeyRing.Table.Applicant(
          claimant: KeyRing.WeakRequest(request: self),
          demands: demands,
          outer: tickets,
          home: home
        )
        let ticket = table.join(applicant, &effects)
        phase = .standing(ticket)
        switch table.entries[ticket]?.state {
        case .holding: return (.granted, table.startTime(of: ticket))
        case .called where begins:
          _ = table.arrive(ticket, waits: isInHand, &effects)
          return (.granted, table.startTime(of: ticket))
        case .called: return (.granted, nil)
        case .waiting, .late, nil: return (.waits, nil)
        }
      }
    }
    if let start { start.note(on: operation.clock) }
    for other in replaced { other.request?.operation?.cancel() }
    if let taken {
      operation.cancel(with: OperationError.excluded(operation, from: taken.key, by: taken.by?.request?.operation))
    }
    return answer
  }

  /// The requests of the operations around it, from the innermost outwards.
  private func requestsAround(_ operation: AsyncOperation) -> [KeyRequest] {
    var requests: [KeyRequest] = []
    var next = operation.core.withLock { $0.supervisor }?.supervisedGroup
    while let outer = next {
      let (permit, supervisor) = outer.core.withLock { ($0.extras?.permit, $0.supervisor) }
      if let request = permit as? KeyRequest { requests.append(request) }
      next = supervisor?.supervisedGroup
    }
    return requests
  }

  /// Lets holders of its keys go that have finished, and have not come to say so because their observers are being told.
  private func releaseFinished(_ outer: [KeyRequest]) {
    let holders = KeyRing.look { table in
      let tickets = outer.compactMap(\.ticket)
      return claims.flatMap { table.holders(at: table.place(of: $0.key, in: $0.domain, inside: tickets)) }
        .compactMap { table.entries[$0]?.claimant }
    }
    for holder in holders { holder.request?.leaveIfFinished() }
  }

  func leaveIfFinished() {
    if operation?.isFinished == true { leave() }
  }

  /// Under the lock of the table.
  fileprivate var ticket: KeyRing.Table.Ticket? {
    if case .standing(let ticket) = phase { ticket } else { nil }
  }

  // MARK: Going on

  /// Its turn has come.
  func goes(isCalled: Bool) {
    guard let operation else { return }
    if isCalled { return operation.permitIsGranted() }
    let (resumption, start) = KeyRing.look { table in
      defer { self.resumption = nil }
      return (self.resumption, ticket.flatMap { table.startTime(of: $0) })
    }
    start?.note(on: operation.clock)
    resumption?()
  }

  override func whenGranted(_ resumption: @escaping @Sendable () -> Void) {
    let isGranted = KeyRing.look { table in
      if ticket.flatMap({ table.entries[$0]?.state }) == .holding { return true }
      self.resumption = resumption
      return false
    }
    if isGranted { resumption() }
  }

  /// Waits until the start has left the window.
  func wait(for delay: KeyRing.Table.Delay) {
    guard let operation else { return }
    let interval = delay.window.throttle.interval
    let rest = delay.start.time.elapsed.map { interval - $0 } ?? interval
    if rest <= .zero { return KeyRing.change { $0.verify(delay, &$1) } }
    let isNew = KeyRing.look { _ in
      if delaySerial == delay.start.serial { return false }
      delaySerial = delay.start.serial
      return true
    }
    guard isNew else { return }
    let timer = ClockTimer.start(after: rest, on: operation.clock) { [weak self] in
      guard let self else { return }
      KeyRing.look { _ in delaySerial = nil }
      wait(for: delay)
    }
    let superfluous = KeyRing.look { _ in
      defer { if ticket != nil { self.timer = timer } }
      return ticket == nil ? timer : self.timer
    }
    superfluous?.cancel()
  }

  func refuse(_ refusal: KeyRing.Table.Refusal) {
    guard let operation else { return }
    operation.cancel(
      with: OperationError.deadlock(of: operation, wanting: refusal.key, of: refusal.holder?.request?.operation)
    )
  }

  // MARK: Leaving

  override func withdraw() -> Bool {
    KeyRing.change { table, effects in
      guard let ticket, table.entries[ticket]?.state == .waiting else { return false }
      phase = .idle
      table.leave(ticket, &effects)
      return true
    }
  }

  override func operationWasCancelled() {
    KeyRing.change { table, effects in
      if let ticket, table.entries[ticket]?.state == .holding { return }
      leave(&table, &effects)
    }
    stopTimer()
  }

  override func operationDidFinish() { leave() }

  func leave() {
    KeyRing.change { leave(&$0, &$1) }
    stopTimer()
  }

  private func leave(_ table: inout KeyRing.Table, _ effects: inout KeyRing.Table.Effects) {
    let old = ticket
    phase = .over
    if let old { table.leave(old, &effects) }
  }

  private func stopTimer() {
    let (timer, resumption) = KeyRing.look { _ in
      defer { (self.timer, self.resumption) = (nil, nil) }
      return (self.timer, self.resumption)
    }
    timer?.cancel()
    withExtendedLifetime(resumption) {}
  }

  // MARK: Looking

  struct Obstacle {
    let key: ExclusivityKey
    let limit: Int
    let operation: AsyncOperation?
    /// Otherwise that one stands before this one.
    let isHeld: Bool
  }

  /// A key for whose window it waits.
  var throttledKey: ExclusivityKey? {
    KeyRing.look { table in
      guard delaySerial != nil, let ticket, table.entries[ticket]?.state == .waiting else { return nil }
      return claims.first { !$0.throttles.isEmpty }?.key
    }
  }

  /// What it waits for. Empty if it holds its keys, or has not requested them.
  var obstacles: [Obstacle] {
    let found = KeyRing.look { table in
      (ticket.map { table.obstacles(of: $0) } ?? []).map { ($0, table.entries[$0.other]?.claimant) }
    }
    return found.map { obstacle, other in
      Obstacle(
        key: obstacle.place.key,
        limit: obstacle.limit,
        operation: other?.request?.operation,
        isHeld: obstacle.isHeld
      )
    }
  }
}

extension ExclusivityPolicy {
  /// Of two policies for one key the greater counts.
  fileprivate var rank: Int {
    switch self {
    case .wait: 0
    case .replace: 1
    case .drop: 2
    }
  }
}

extension OperationCore {
  /// What starts the operation.
  fileprivate var home: ObjectIdentifier? {
    if let supervisor { return ObjectIdentifier(supervisor) }
    return queue.map { ObjectIdentifier($0) }
  }
}

extension OperationError {
  /// The error of an operation that does not wait for a key.
  static func excluded(_ operation: Operation, from key: ExclusivityKey, by other: Operation?) -> OperationError {
    OperationError(
      .excluded,
      "\(operation.quotedName) did not run because \(other?.quotedName ?? "another operation") has the key \(key.quoted)."
    )
  }

  /// The error of an operation that would wait for ever.
  static func deadlock(of operation: Operation, wanting key: ExclusivityKey, of holder: Operation?) -> OperationError {
    let holder = holder?.quotedName ?? "another operation"
    return OperationError(
      .waitCycle,
      "\(operation.quotedName) did not run because of a deadlock: it waits for the key \(key.quoted), which \(holder) holds, "
        + "and \(holder) waits for a group around \(operation.quotedName). Let the groups request all of the keys."
    )
  }
}
