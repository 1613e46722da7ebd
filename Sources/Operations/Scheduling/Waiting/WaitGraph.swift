import Foundation

/// The waits of blocked schedulers for each other. The thread of a scheduler has a stack of waits. A blocked thread may
/// run a body that is handed over to it, and that body may also wait. A body in the mailbox runs after all waits of its
/// scheduler have ended. A body that is handed over to a wait runs after all waits inside that wait have ended.
struct WaitGraph {
  static let shared = Locked(WaitGraph())

  /// The number of schedulers that may be blocked at once, each on a thread. Dispatch has 255 threads for serial queues
  /// of one quality of service on Linux, and 512 for the process on Apple's platforms. Else a queue waits silently.
  static let threadLimit = 200

  /// The waits of each scheduler, innermost last.
  private var blocked: [ObjectIdentifier: [WaitLink]] = [:]

  /// Records a wait. Returns the wait whose blocked thread runs the body, or nil if the body goes to the mailbox.
  mutating func begin(_ link: WaitLink) throws(OperationError) -> WaitLink? {
    if let waiter = link.waiter { blocked[ObjectIdentifier(waiter), default: []].append(link) }
    do {
      try chooseServer(for: link)
    } catch {
      remove(link)
      throw error
    }
    if link.server == nil, let waiter = link.waiter, blocked.count > Self.threadLimit {
      remove(link)
      throw OperationError(
        .overflow,
        "The scheduler “\(waiter.name)” cannot wait for “\(link.target.name)” because \(blocked.count) schedulers "
          + "already block in `wait` and no thread may be left. Await `run` instead."
      )
    }
    return link.server
  }

  /// A body for a scheduler that is blocked in a job of an actor waits for the job, which usually closes a cycle.
  private func chooseServer(for link: WaitLink) throws(OperationError) {
    link.server = server(for: link).flatMap { $0.inbox == nil ? nil : $0 }
    guard let cycle = cycle(through: link) else { return }
    let names = cycle.map { "“\($0.name)”" }.joined(separator: " → ")
    throw OperationError(.waitCycle, "Deadlock of schedulers: \(names). Await run(_:) instead.")
  }

  /// Hands a wait to the thread chosen for its body, and returns that thread's wait. If that has ended, chooses again.
  func deliver(_ link: WaitLink) throws(OperationError) -> WaitLink? {
    if link.server?.isOpen == false { try chooseServer(for: link) }
    link.server?.inbox?.append(link)
    return link.server
  }

  /// Removes and returns the next wait for the thread that a wait blocks, or returns nil if the latter has ended.
  func next(for link: WaitLink) -> WaitLink? { link.isOpen ? link.inbox?.popFirst() : nil }

  /// Removes a wait whose thread continues, and returns the waits whose bodies the thread has not run.
  mutating func end(_ link: WaitLink) -> [WaitLink] {
    remove(link)
    return link.inbox.take().map { $0.all.compactMap { $0 } } ?? []
  }

  private mutating func remove(_ link: WaitLink) {
    link.isOpen = false
    guard let waiter = link.waiter.map(ObjectIdentifier.init), var waits = blocked.removeValue(forKey: waiter) else {
      return
    }
    // The wait is nearly always the innermost one.
    if let index = waits.lastIndex(where: { $0 === link }) { waits.remove(at: index) }
    if !waits.isEmpty { blocked[waiter] = waits }
  }

  func waits(of scheduler: SerialScheduler) -> [WaitLink] { blocked[ObjectIdentifier(scheduler)] ?? [] }

  /// Returns the innermost wait of the target that cannot end before `link`. The bodies in which `link` and the waits
  /// outside it on its stack were called cannot finish before `link` ends, so the waits for these bodies cannot end
  /// either. The same holds for the waits outside those, and so on.
  private func server(for link: WaitLink) -> WaitLink? {
    let candidates = waits(of: link.target)
    guard let innermost = candidates.last(where: \.isOpen) else { return nil }
    // In nested waits, the innermost wait is nearly always one of the callers. The whole search would cost O(n).
    let callers = sequence(first: link) { $0.previous.flatMap { $0.isOpen ? $0 : nil } }
    if callers.dropFirst().contains(where: { $0 === innermost }) { return innermost }
    var found: Set<ObjectIdentifier> = []
    var pending = [link]
    while let next = pending.popLast() {
      let stack = next.waiter.map { waits(of: $0) } ?? []
      let outside = stack.lastIndex { $0 === next }.map { stack[..<$0] } ?? []
      for caller in (outside + [next]).compactMap(\.previous) where caller.isOpen {
        if found.insert(ObjectIdentifier(caller)).inserted { pending.append(caller) }
      }
    }
    return candidates.last { found.contains(ObjectIdentifier($0)) }
  }

  /// Returns the schedulers of a cycle through a wait, or nil. Each waits for the next, and the first is also the last.
  /// The search follows the waits that must end before the body of a wait can run: the open waits of its target inside
  /// its server, or all open waits of the target if the body is in the mailbox.
  private func cycle(through link: WaitLink) -> [SerialScheduler]? {
    guard let waiter = link.waiter else { return nil }
    var origins: [ObjectIdentifier: WaitLink] = [:]
    // The number of waits of each scheduler that have not been visited, outermost first.
    var unvisited: [ObjectIdentifier: Int] = [:]
    var pending = [link]
    while let next = pending.popLast() {
      let waits = waits(of: next.target)
      let end = unvisited[ObjectIdentifier(next.target)] ?? waits.count
      // A server that is no longer on the stack does not run the body.
      let server = waits.lastIndex { $0 === next.server }
      let start = server.map { $0 + 1 } ?? 0
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
