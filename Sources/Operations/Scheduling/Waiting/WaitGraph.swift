/// Which schedulers are blocked, waiting for which.
///
/// Every thread that runs something for a scheduler is a stack: an event, which may have come to wait; a body that is
/// being served meanwhile, which may have come to wait; and so on. A wait ends when its body has been run. A body in
/// the mailbox has to wait until the whole stack of its scheduler is gone; one that is handed over to a wait, for what
/// is above that.
struct WaitGraph {
  static let shared = Locked(WaitGraph())

  enum Decision {
    case post
    /// To a thread that waits for us, through whomever, and belongs to the scheduler that is wanted.
    case handOver(WaitLink)
    /// It would wait for ever: the schedulers on the way, from the one that waits back to it.
    case circle([SerialScheduler])
  }

  /// What a blocked thread has to do.
  enum Step {
    case sleep
    case serve(EventTicket)
    case end
  }

  /// Innermost last: a thread that serves while it waits may come to wait again.
  private var blocked: [ObjectIdentifier: [WaitLink]] = [:]

  /// Decides about a wait, and has it on record unless it closes a circle.
  mutating func begin(_ link: WaitLink) -> Decision {
    if let waiter = link.waiter { blocked[ObjectIdentifier(waiter), default: []].append(link) }
    let decision = decide(about: link)
    if case .circle = decision { remove(link) }
    return decision
  }

  /// Whom it is handed over to. An actor that is in the middle of its job does not serve: what is for its scheduler
  /// waits for the end of the job, which mostly is a circle.
  private func decide(about link: WaitLink) -> Decision {
    link.server = server(for: link).flatMap { $0.canServe ? $0 : nil }
    if let circle = circle(through: link) { return .circle(circle) }
    return link.server.map(Decision.handOver) ?? .post
  }

  /// Gives the event of a wait to the one that is to serve it. If its time is over by now, that is decided anew.
  mutating func deliver(_ ticket: EventTicket, of link: WaitLink) -> Decision {
    var decision = link.server.map(Decision.handOver) ?? .post
    if link.server?.isOpen == false { decision = decide(about: link) }
    if case .handOver(let server) = decision { server.inbox.append(ticket) }
    return decision
  }

  func step(_ link: WaitLink) -> Step {
    if !link.isOpen { return .end }
    return link.inbox.popFirst().map(Step.serve) ?? .sleep
  }

  /// The body has been run, and nobody has to wait for it any more. It stays on the stack of its thread, which may take
  /// a while to hear of it, or be serving somebody.
  func finish(_ link: WaitLink) { link.isOpen = false }

  /// The thread goes on.
  ///
  /// - Returns: What it was to serve and has not.
  mutating func end(_ link: WaitLink) -> [EventTicket] {
    remove(link)
    var left: [EventTicket] = []
    while let ticket = link.inbox.popFirst() { left.append(ticket) }
    return left
  }

  private mutating func remove(_ link: WaitLink) {
    link.isOpen = false
    guard let waiter = link.waiter.map(ObjectIdentifier.init) else { return }
    blocked[waiter]?.removeAll { $0 === link }
    if blocked[waiter]?.isEmpty == true { blocked[waiter] = nil }
  }

  func isBlocked(_ scheduler: SerialScheduler) -> Bool { !waits(of: scheduler).isEmpty }

  private func waits(of scheduler: SerialScheduler) -> [WaitLink] { blocked[ObjectIdentifier(scheduler)] ?? [] }

  /// The innermost wait of the target that cannot end before this one: its body is below it on the stack, or on the
  /// stack of one that waits for that, and so on. A body that nobody waits for any more is no such, but what is below
  /// it may be.
  private func server(for link: WaitLink) -> WaitLink? {
    var found: Set<ObjectIdentifier> = []
    var pending = [link]
    while let next = pending.popLast() {
      var bodies = [next.previous]
      if let waiter = next.waiter { bodies += waits(of: waiter).prefix { $0 !== next }.map(\.previous) }
      for body in bodies.compactMap(\.self) where body.isOpen && found.insert(ObjectIdentifier(body)).inserted {
        pending.append(body)
      }
    }
    return waits(of: link.target).last { found.contains(ObjectIdentifier($0)) }
  }

  /// What has to end before its body can be run to the end.
  private func obstacles(to link: WaitLink) -> [WaitLink] {
    let waits = waits(of: link.target)
    let server = waits.lastIndex { $0 === link.server }
    return waits[(server.map { $0 + 1 } ?? 0)...].filter(\.isOpen)
  }

  /// A way from the wait back to it.
  private func circle(through link: WaitLink) -> [SerialScheduler]? {
    guard let waiter = link.waiter else { return nil }
    var origins: [ObjectIdentifier: WaitLink] = [:]
    var pending = [link]
    while let next = pending.popLast() {
      for obstacle in obstacles(to: next) {
        if obstacle === link {
          let way = sequence(first: next) { (step: WaitLink) in step === link ? nil : origins[ObjectIdentifier(step)] }
          return [waiter] + way.reversed().map(\.target)
        }
        if origins[ObjectIdentifier(obstacle)] != nil { continue }
        origins[ObjectIdentifier(obstacle)] = next
        pending.append(obstacle)
      }
    }
    return nil
  }
}
