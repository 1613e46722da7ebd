import Foundation

/// The waits of blocked schedulers for each other.
///
/// A thread that runs code for a scheduler has a stack of bodies and waits. At the bottom is an event. While the event
/// waits, the thread may run a body that is handed over to it. That body may wait, too, and so on.
///
/// A wait ends when its body has run. A body in the mailbox runs after the whole stack of its scheduler has finished.
/// A body that is handed over to a wait runs after everything above that wait has finished.
struct WaitGraph {
  static let shared = Locked(WaitGraph())

  /// The decision about a new wait.
  enum Decision {
    /// The event is added to the mailbox.
    case post
    /// The event is handed over to a blocked thread of the target. That thread waits for the caller, directly or
    /// indirectly.
    case handOver(WaitLink)
    /// The wait could never end. The value is the cycle of schedulers, from the waiting scheduler back to itself.
    case cycle([SerialScheduler])
    /// So many schedulers are blocked that the target might never get a thread.
    case refuse(blockedCount: Int)
  }

  /// The number of schedulers that may be blocked at once. Each of them occupies a thread.
  ///
  /// Dispatch has 255 threads for the serial queues of one quality of service on Linux, and 512 for the whole process
  /// on Apple's platforms. When all of them are in use, a queue waits silently until a thread returns. The limit leaves
  /// the remaining threads to other code.
  static let threadLimit = 200

  /// The next step of a blocked thread.
  enum Step {
    case sleep
    case serve(EventTicket)
    case end
  }

  /// The waits of each scheduler, innermost last. A thread that runs a body while it waits can wait again.
  private var blocked: [ObjectIdentifier: [WaitLink]] = [:]

  /// Decides about a wait, and records the wait unless it is refused or closes a cycle.
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
    case .cycle:
      remove(link)
      return decision
    }
  }

  /// Chooses the wait whose thread runs the body, and checks for a cycle.
  ///
  /// A thread that is blocked in a job of an actor runs no other body. A body for its scheduler must wait until the job
  /// has finished, which usually closes a cycle.
  private func decide(about link: WaitLink) -> Decision {
    link.server = server(for: link).flatMap { $0.canServe ? $0 : nil }
    if let cycle = cycle(through: link) { return .cycle(cycle) }
    return link.server.map(Decision.handOver) ?? .post
  }

  /// Hands the event of a wait over to the chosen thread. If that thread's wait has ended, decides again.
  mutating func deliver(_ ticket: EventTicket, of link: WaitLink) -> Decision {
    var decision = link.server.map(Decision.handOver) ?? .post
    if link.server?.isOpen == false { decision = decide(about: link) }
    if case .handOver(let server) = decision { server.inbox.append(ticket) }
    return decision
  }

  /// Returns the next step of the thread that a wait blocks, and removes the event that the thread must serve.
  func step(_ link: WaitLink) -> Step {
    if !link.isOpen { return .end }
    return link.inbox.popFirst().map(Step.serve) ?? .sleep
  }

  /// Records that the body of a wait has run.
  ///
  /// The wait stays on the stack until its thread wakes up. The thread may be running another body meanwhile.
  func finish(_ link: WaitLink) { link.isOpen = false }

  /// Removes a wait whose thread continues.
  ///
  /// - Returns: The events that were handed over to the thread and have not run.
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
    // The wait is nearly always the innermost one.
    if let index = waits.lastIndex(where: { $0 === link }) { waits.remove(at: index) }
    for index in waits.indices.dropFirst(link.depth) { waits[index].depth = index }
    if !waits.isEmpty { blocked[waiter] = waits }
  }

  func waits(of scheduler: SerialScheduler) -> [WaitLink] { blocked[ObjectIdentifier(scheduler)] ?? [] }

  /// Returns the innermost wait of the target that cannot end before `link`.
  ///
  /// The bodies below `link` on the stack cannot finish before `link` ends, so the waits for these bodies cannot end
  /// before `link` either. The search continues with the bodies below those waits. A body whose wait has ended is
  /// skipped, but the bodies below it are not.
  ///
  /// In nested waits the result is the target's innermost wait, found in as many steps as the nest has schedulers. Only
  /// if that wait is unrelated to `link` does the search visit all waits below, each once.
  private func server(for link: WaitLink) -> WaitLink? {
    let candidates = waits(of: link.target)
    guard let innermost = candidates.last(where: \.isOpen) else { return nil }
    let chain = sequence(first: link) { $0.previous.flatMap { $0.isOpen ? $0 : nil } }
    if chain.dropFirst().contains(where: { $0 === innermost }) { return innermost }
    var found: Set<ObjectIdentifier> = []
    /// The number of waits of each scheduler that have been visited, outermost first.
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

  /// Returns the schedulers of a cycle through a wait, or nil if there is none.
  ///
  /// The search follows the waits that must end before the body of a wait can finish. These are the open waits of its
  /// target above its server on the stack. If the body is in the mailbox, they are all open waits of the target.
  private func cycle(through link: WaitLink) -> [SerialScheduler]? {
    guard let waiter = link.waiter else { return nil }
    var origins: [ObjectIdentifier: WaitLink] = [:]
    /// The number of waits of each scheduler that have not been visited, outermost first.
    var unvisited: [ObjectIdentifier: Int] = [:]
    var pending = [link]
    while let next = pending.popLast() {
      let waits = waits(of: next.target)
      let end = unvisited[ObjectIdentifier(next.target)] ?? waits.count
      // A server that is no longer on the stack does not run the body.
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

/// A call of ``SerialScheduler/wait(timeout:_:file:line:)``, which blocks its thread.
///
/// If a wait is called in the body of another wait, `previous` is the other wait. The links thus trace one flow of
/// control across threads. The mutable state belongs to the ``WaitGraph``.
final class WaitLink: @unchecked Sendable {
  /// The innermost wait whose body the current thread is running.
  private static let innermost = ThreadLocal<WaitLink>()

  /// The scheduler that the thread runs for, or nil.
  let waiter: SerialScheduler?
  let target: SerialScheduler
  let previous: WaitLink?
  /// Whether the blocked thread may run other bodies for its scheduler. False in a job of an actor, because no other
  /// code may run until the job suspends.
  let canServe: Bool

  /// Whether the wait continues. A wait ends when its body has run or its timeout has expired.
  var isOpen = true
  /// The number of waits of the same scheduler that enclose this one.
  var depth = 0
  /// The wait whose thread runs the body, or nil if the body goes to the mailbox.
  var server: WaitLink?
  /// The events that the blocked thread must run.
  var inbox = ArrayDeque<EventTicket>()

  private let signal = DispatchSemaphore(value: 0)

  init(from waiter: SerialScheduler?, to target: SerialScheduler, after previous: WaitLink?, canServe: Bool) {
    self.waiter = waiter
    self.target = target
    self.previous = previous
    self.canServe = canServe
  }

  /// Creates a wait of the current thread.
  convenience init(to target: SerialScheduler) {
    let isJob = unsafe withUnsafeCurrentTask { task in unsafe task != nil }
    self.init(from: .current, to: target, after: Self.innermost.current, canServe: !isJob)
  }

  func wake() { signal.signal() }

  /// Blocks the thread until ``wake()`` is called or the deadline has passed.
  ///
  /// - Returns: False if the deadline has passed.
  func sleep(until deadline: DispatchTime) -> Bool { signal.wait(timeout: deadline) == .success }

  /// Runs the body of the wait.
  func run(_ body: EventTicket.Body) { Self.innermost.withValue(self) { body(nil) } }
}
