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
    /// So many schedulers are blocked that the target might never get a thread.
    case refuse(blockedCount: Int)
  }

  /// How many schedulers may be blocked at once, each with its thread.
  ///
  /// Dispatch gives serial queues of one quality of service 255 threads on Linux, and 512 to the whole process on Apple's
  /// platforms. Beyond that a queue waits, silently, until a thread returns. The rest is for what the program does besides.
  static let threadLimit = 200

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
    if let waiter = link.waiter {
      link.depth = blocked[ObjectIdentifier(waiter)]?.count ?? 0
      blocked[ObjectIdentifier(waiter), default: []].append(link)
    }
    let decision = decide(about: link)
    switch decision {
    case .handOver: return decision
    case .post where link.waiter == nil || blocked.count <= Self.threadLimit: return decision
    case .post, .refuse:
      remove(link)
      return .refuse(blockedCount: blocked.count)
    case .circle:
      remove(link)
      return decision
    }
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
    guard let waiter = link.waiter.map(ObjectIdentifier.init), var waits = blocked.removeValue(forKey: waiter) else {
      return
    }
    // Nearly always the innermost.
    if let index = waits.lastIndex(where: { $0 === link }) { waits.remove(at: index) }
    for index in waits.indices.dropFirst(link.depth) { waits[index].depth = index }
    if !waits.isEmpty { blocked[waiter] = waits }
  }

  func isBlocked(_ scheduler: SerialScheduler) -> Bool { !waits(of: scheduler).isEmpty }

  private func waits(of scheduler: SerialScheduler) -> [WaitLink] { blocked[ObjectIdentifier(scheduler)] ?? [] }

  /// The innermost wait of the target that cannot end before this one: its body is below it on the stack, or on the
  /// stack of one that waits for that, and so on. A body that nobody waits for any more is no such, but what is below
  /// it may be.
  ///
  /// In a nest of waits that is the target's innermost wait, and as many steps away as there are schedulers in the nest.
  /// Only if that wait has nothing to do with this one are all waits below visited, each once.
  private func server(for link: WaitLink) -> WaitLink? {
    let candidates = waits(of: link.target)
    guard let innermost = candidates.last(where: \.isOpen) else { return nil }
    let chain = sequence(first: link) { $0.previous.flatMap { $0.isOpen ? $0 : nil } }
    if chain.dropFirst().contains(where: { $0 === innermost }) { return innermost }
    var found: Set<ObjectIdentifier> = []
    /// How many waits of a scheduler, the outermost first, have been visited.
    var visited: [ObjectIdentifier: Int] = [:]
    var pending = [link]
    while let next = pending.popLast() {
      var bodies = [next.previous]
      if let waiter = next.waiter {
        let waits = waits(of: waiter)
        let (start, end) = (visited[ObjectIdentifier(waiter)] ?? 0, min(next.depth, waits.count))
        if start < end {
          visited[ObjectIdentifier(waiter)] = end
          bodies += waits[start..<end].map(\.previous)
        }
      }
      for body in bodies.compactMap(\.self) where body.isOpen && found.insert(ObjectIdentifier(body)).inserted {
        pending.append(body)
      }
    }
    return candidates.last { found.contains(ObjectIdentifier($0)) }
  }

  /// A way from the wait back to it: by what has to end before its body can be run to the end, the waits of its target
  /// that are within the one that serves it.
  private func circle(through link: WaitLink) -> [SerialScheduler]? {
    guard let waiter = link.waiter else { return nil }
    var origins: [ObjectIdentifier: WaitLink] = [:]
    /// How many waits of a scheduler have not been visited, the outermost first.
    var unvisited: [ObjectIdentifier: Int] = [:]
    var pending = [link]
    while let next = pending.popLast() {
      let waits = waits(of: next.target)
      let end = unvisited[ObjectIdentifier(next.target)] ?? waits.count
      // One that has ended serves no more.
      let start = next.server.flatMap { $0.depth < waits.count && waits[$0.depth] === $0 ? $0.depth + 1 : nil } ?? 0
      if start >= end { continue }
      unvisited[ObjectIdentifier(next.target)] = start
      for obstacle in waits[start..<end] where obstacle.isOpen {
        origins[ObjectIdentifier(obstacle)] = next
        if obstacle === link {
          let way = sequence(first: next) { (step: WaitLink) in step === link ? nil : origins[ObjectIdentifier(step)] }
          return [waiter] + way.reversed().map(\.target)
        }
        pending.append(obstacle)
      }
    }
    return nil
  }
}
