import Foundation

/// What an operation wants to hold while it executes, and whether it has got it.
///
/// It belongs to the operation and goes with it: what it holds is free again then, whatever became of the operation.
final class ExclusivityRequest: OperationAdmission, @unchecked Sendable {
  enum Phase {
    case idle
    case waiting(ExclusivityDomain.Table.Ticket)
    case holding(ExclusivityDomain.Table.Ticket)
    /// The operation has finished, or is not to hold anything any more.
    case over

    var ticket: ExclusivityDomain.Table.Ticket? {
      switch self {
      case .waiting(let ticket), .holding(let ticket): ticket
      case .idle, .over: nil
      }
    }
  }

  private let keys: [ExclusivityKey]
  private let policy: ExclusivityPolicy
  let domain: ExclusivityDomain
  private(set) weak var operation: Operation?
  /// What the operation runs inside of, if it is a member.
  private weak var group: GroupOperation?
  /// What it is in otherwise.
  private weak var queue: OperationQueue?
  /// Keeps a plain Foundation operation back.
  let gate: ExclusivityGate?

  // Guarded by the lock of the domain.
  private(set) var phase = Phase.idle
  private var isRefused = false
  /// The operation has been told to go, and does not.
  private var insists = false
  /// The operation has a slot, and has to wait for its keys again: how it goes on.
  private var resumption: (@Sendable () -> Void)?

  init(
    _ keys: [ExclusivityKey],
    for operation: Operation,
    policy: ExclusivityPolicy,
    domain: ExclusivityDomain,
    inside group: GroupOperation? = nil,
    of queue: OperationQueue? = nil
  ) {
    var seen: Set<ExclusivityKey> = []
    self.keys = keys.filter { seen.insert($0).inserted }
    self.policy = policy
    self.domain = domain
    self.group = group
    self.queue = queue
    self.operation = operation
    gate = operation is AsyncOperation ? nil : ExclusivityGate(for: self.keys)
    super.init()
    gate?.request = self
  }

  deinit { leave() }

  /// Whether the operation may execute.
  var isHolding: Bool {
    domain.state.withLock { _ in
      if case .holding = phase { return true }
      return false
    }
  }

  /// Whether the operation has been turned away, and cancelled.
  var wasRefused: Bool { domain.state.withLock { _ in isRefused } }

  override var goal: String { keys.quoted }

  // MARK: Asking

  override func operationAsks() {
    guard let operation else { return }
    // One of ours would have said so.
    if let gate, operation.isCancelled { return gate.unlock() }
    if policy == .drop { domain.releaseFinished(keys) }
    let surroundings = ExclusivitySurroundings(of: group, in: domain)
    let slots = limitedSlots
    let answer = domain.state.withLock { ask(&$0.table, within: surroundings, waitingFor: slots) }
    for request in answer.granted { request.admit() }
    for request in answer.replaced { request.replace() }
    if answer.isGranted { admit() }
    switch answer.refusal {
    case .taken(let key, let other): refuse(operation, .excluded(operation, from: key, by: other))
    case .circle(let key, let holder): refuse(operation, .circle(of: operation, wanting: key, of: holder?.operation))
    case nil: return
    }
  }

  /// Nothing that it looks at is let go of before the lock is released: it may be the last reference.
  private func ask(
    _ table: inout ExclusivityDomain.Table,
    within surroundings: ExclusivitySurroundings,
    waitingFor slots: ObjectIdentifier?
  ) -> ExclusivityAnswer {
    var answer = ExclusivityAnswer()
    guard case .idle = phase else { return answer }
    let outer = surroundings.requests.compactMap(\.phase.ticket)
    let places = table.places(for: keys, within: outer)
    switch insists ? .wait : policy {
    case .wait: break
    case .drop:
      if let (key, ticket) = table.firstTaken(of: places) {
        phase = .over
        answer.refusal = .taken(key, by: table.entries[ticket]?.claimant.request)
        return answer
      }
    case .replace:
      // The last to come is the first to go, or it would have its turn when those before it have gone.
      answer.replaced = table.tickets(at: places).reversed().compactMap { table.entries[$0]?.claimant.request }
      for request in answer.replaced { answer.granted += request.giveUpWaiting(&table) }
    }
    let applicant = ExclusivityDomain.Table.Applicant(
      claimant: ExclusivityDomain.WeakRequest(request: self),
      places: places,
      outer: outer,
      slots: slots,
      taken: surroundings.slots,
      isPatient: gate == nil,
      // Whoever is in its way is about to be cancelled; or there is no help.
      acceptsCircle: policy == .replace || insists
    )
    let (joining, moves) = table.join(applicant)
    carryOut(moves, &table, &answer)
    switch joining {
    case .granted(let ticket):
      phase = .holding(ticket)
      answer.isGranted = true
    case .waiting(let ticket): phase = .waiting(ticket)
    case .circle(let key, let holder):
      phase = .over
      answer.refusal = .circle(key, holder: holder.request)
    }
    return answer
  }

  private func refuse(_ operation: Operation, _ error: OperationError) {
    if let own = operation as? AsyncOperation { own.cancel(with: error) } else { operation.cancel() }
    let isCancelled = operation.isCancelled
    domain.state.withLock { _ in
      isRefused = isCancelled
      // A plain operation may not let itself be cancelled: it waits.
      if !isCancelled { (phase, insists) = (.idle, true) }
    }
    if isCancelled { gate?.unlock() } else { operationAsks() }
  }

  private func replace() {
    guard let operation else { return }
    operation.cancel()
    // If a plain operation has been cancelled its group does not hear of it. But it may not let itself be cancelled.
    withExtendedLifetime(operation) {
      if let gate, operation.isCancelled, giveUpWaiting(then: .over) { gate.unlock() }
    }
  }

  /// Where the operation waits for a slot when it has its keys, if slots are limited there.
  private var limitedSlots: ObjectIdentifier? {
    if let group { return group.maxConcurrentOperationCount < 0 ? nil : ObjectIdentifier(group) }
    return queue.flatMap { $0.maxConcurrentOperationCount < 0 ? nil : ObjectIdentifier($0) }
  }

  /// Lets the operation in, or go on, if it holds its keys.
  private func admit() {
    // It has to be alive when the gate tells it.
    guard let operation else { return }
    let (isHolding, resumption) = domain.state.withLock { _ -> (Bool, (@Sendable () -> Void)?) in
      guard case .holding = phase else { return (false, nil) }
      defer { self.resumption = nil }
      return (true, self.resumption)
    }
    guard isHolding else { return }
    withExtendedLifetime(operation) {
      if let gate { return gate.unlock() }
      if let resumption { resumption() } else { (operation as? AsyncOperation)?.admit() }
    }
  }

  // MARK: Beginning

  override func operationBegins() -> Bool { domain.state.withLock { begin(&$0.table) } }

  override func whenAdmittedAgain(_ resumption: @escaping @Sendable () -> Void) {
    let (mayBegin, moves) = domain.state.withLock { state -> (Bool, ExclusivityAnswer) in
      var answer = ExclusivityAnswer()
      if case .waiting(let old) = phase {
        let (ticket, moves) = state.table.waitInSlot(old)
        phase = state.table.entries[ticket]?.isGranted == true ? .holding(ticket) : .waiting(ticket)
        carryOut(moves, &state.table, &answer)
      }
      if begin(&state.table) { return (true, answer) }
      self.resumption = resumption
      return (false, answer)
    }
    // If it is one of them it may begin, and has no resumption.
    for request in moves.granted where request !== self { request.admit() }
    if mayBegin { resumption() }
  }

  /// What somebody's coming means for others.
  private func carryOut(
    _ moves: ExclusivityDomain.Table.Moves,
    _ table: inout ExclusivityDomain.Table,
    _ answer: inout ExclusivityAnswer
  ) {
    for (claimant, ticket) in moves.revoked {
      answer.revoked.append(claimant.request)
      claimant.request?.waitAgain(with: ticket)
    }
    answer.granted += ExclusivityRequest.hold(moves.granted, &table)
  }

  private func begin(_ table: inout ExclusivityDomain.Table) -> Bool {
    switch phase {
    case .holding(let ticket): table.begin(ticket)
    // If it is over it has been cancelled, or is just about to be.
    case .idle, .waiting, .over: false
    }
  }

  // MARK: Going

  override func operationPostpones() -> Bool { giveUpWaiting(then: .idle) }

  override func operationWasCancelled() { giveUpWaiting(then: .over) }

  override func operationDidFinish() { leave() }

  /// - Returns: Whether it had a place.
  @discardableResult
  func leave() -> Bool {
    change { table in
      let ticket = phase.ticket
      phase = .over
      return ticket.map { table.release($0) }
    }
  }

  /// Gives its place up, unless it holds its keys already.
  ///
  /// - Returns: Whether it had one.
  @discardableResult
  private func giveUpWaiting(then next: Phase) -> Bool {
    change { table in
      switch phase {
      case .idle:
        phase = next
        return nil
      case .waiting(let ticket):
        phase = next
        return table.release(ticket)
      case .holding, .over: return nil
      }
    }
  }

  /// The same for one of ours that is about to be cancelled.
  private func giveUpWaiting(_ table: inout ExclusivityDomain.Table) -> [ExclusivityRequest] {
    guard gate == nil, case .waiting(let ticket) = phase else { return [] }
    phase = .over
    return table.release(ticket)
  }

  private func change(_ change: (inout ExclusivityDomain.Table) -> [ExclusivityRequest]?) -> Bool {
    let granted = domain.state.withLock { change(&$0.table) }
    for request in granted ?? [] { request.admit() }
    return granted != nil
  }

  /// They hold their keys now, unless somebody has come before them again since.
  ///
  /// - Returns: All of them, to be let in when the lock is released, as far as they hold their keys.
  fileprivate static func hold(
    _ claimants: [ExclusivityDomain.WeakRequest],
    _ table: inout ExclusivityDomain.Table
  ) -> [ExclusivityRequest] {
    let requests = claimants.compactMap(\.request)
    for request in requests {
      guard case .waiting(let ticket) = request.phase, table.entries[ticket]?.isGranted == true else { continue }
      request.phase = .holding(ticket)
      if request.resumption != nil { _ = table.begin(ticket) }
    }
    return requests
  }

  /// Somebody goes before.
  private func waitAgain(with ticket: ExclusivityDomain.Table.Ticket) {
    if phase.ticket != nil { phase = .waiting(ticket) }
  }
}

extension ExclusivityDomain.Table {
  /// Under the lock of the domain.
  fileprivate mutating func release(_ ticket: Ticket) -> [ExclusivityRequest] {
    let granted = leave(ticket)
    return ExclusivityRequest.hold(granted, &self)
  }
}
