/// Which schedulers are blocked, waiting for which.
struct WaitGraph {
  static let shared = Locked(WaitGraph())

  enum Decision {
    case post
    /// To a thread that waits for us, through whomever, and belongs to the scheduler that is wanted.
    case handOver(WaitLink)
    /// It would wait for ever: the schedulers on the way, beginning and ending with the one that closes the circle.
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
    let chain = chain(before: link)
    if let server = chain.first(where: { $0.waiter === link.target }) {
      guard server.canServe else { return .circle(path(from: server, through: chain, to: link)) }
      record(link)
      server.serving += 1
      return .handOver(server)
    }
    if let circle = circle(closedBy: link, chain) { return .circle(circle) }
    record(link)
    return .post
  }

  mutating func deliver(_ ticket: EventTicket, to server: WaitLink) -> Bool {
    guard server.isOpen else { return false }
    server.inbox.append(ticket)
    return true
  }

  mutating func noteServed(_ server: WaitLink) { server.serving -= 1 }

  mutating func step(_ link: WaitLink) -> Step {
    if link.hasEnded { return .end }
    return link.inbox.popFirst().map(Step.serve) ?? .sleep
  }

  /// The body has been run. The thread may take a while to hear of it, but waits no more: whoever comes now is not told so.
  mutating func finish(_ link: WaitLink) {
    link.hasEnded = true
    remove(link)
  }

  /// The thread goes on.
  ///
  /// - Returns: What it was to serve and has not.
  mutating func end(_ link: WaitLink) -> [EventTicket] {
    remove(link)
    var left: [EventTicket] = []
    while let ticket = link.inbox.popFirst() { left.append(ticket) }
    return left
  }

  func isBlocked(_ scheduler: SerialScheduler) -> Bool { blocked[ObjectIdentifier(scheduler)] != nil }

  private mutating func remove(_ link: WaitLink) {
    link.isOpen = false
    guard let waiter = link.waiter.map(ObjectIdentifier.init) else { return }
    blocked[waiter]?.removeAll { $0 === link }
    if blocked[waiter]?.isEmpty == true { blocked[waiter] = nil }
  }

  private mutating func record(_ link: WaitLink) {
    if let waiter = link.waiter { blocked[ObjectIdentifier(waiter), default: []].append(link) }
  }

  /// The waits that wait for this one, innermost first. One that has run out of time waits no more, nor do those before it.
  private func chain(before link: WaitLink) -> [WaitLink] {
    Array(sequence(first: link) { $0.previous }.dropFirst().prefix { $0.isOpen })
  }

  /// Follows who the target waits for, and so on, to somebody who waits for `link`. Whoever serves is not blocked.
  private func circle(closedBy link: WaitLink, _ chain: [WaitLink]) -> [SerialScheduler]? {
    let waiting = [link] + chain
    var path = [link.target]
    while let blocking = blocked[ObjectIdentifier(path[path.count - 1])]?.last, blocking.serving == 0 {
      let next = blocking.target
      path.append(next)
      if let start = waiting.first(where: { $0.waiter === next }) {
        return self.path(from: start, through: chain, to: link) + path.dropFirst()
      }
    }
    return nil
  }

  private func path(from start: WaitLink, through chain: [WaitLink], to link: WaitLink) -> [SerialScheduler] {
    let between = ([link] + chain).prefix { $0 !== start } + [start]
    return between.reversed().compactMap(\.waiter) + [link.target]
  }
}
