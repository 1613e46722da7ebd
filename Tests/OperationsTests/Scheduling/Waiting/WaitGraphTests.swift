import Testing

@testable import Operations

/// The decisions about waits: the mailbox, a blocked thread, or a refusal.
@Suite struct WaitGraphTests {
  private let a = SerialScheduler(name: "a")
  private let b = SerialScheduler(name: "b")
  private let c = SerialScheduler(name: "c")
  private var graph = WaitGraph()

  private mutating func wait(
    _ waiter: SerialScheduler?,
    _ target: SerialScheduler,
    after previous: WaitLink? = nil
  ) -> (decision: String, link: WaitLink) {
    let link = WaitLink(from: waiter, to: target, after: previous)
    // As outside of a task.
    link.inbox = ArrayDeque()
    do {
      guard let server = try graph.begin(link) else { return ("post", link) }
      return (server === previous ? "hand over" : "hand over to another", link)
    } catch {
      if error.code != .waitCycle { return (error.message, link) }
      let names = error.message.split(separator: "“").dropFirst().map { name in String(name.prefix { $0 != "”" }) }
      return (names.joined(separator: " "), link)
    }
  }

  @Test mutating func whatIsBelowAWaitThatHasEndedIsStillServed() {
    let second = wait(b, a, after: wait(a, b).link)
    let abandoned = wait(a, b, after: second.link)
    #expect(second.decision == "hand over" && abandoned.decision == "hand over")
    _ = graph.end(abandoned.link)
    second.link.isOpen = false
    #expect(wait(b, a, after: abandoned.link).decision == "hand over to another")
  }

  /// The body that is abandoned and the body that goes on after it wait for each other's schedulers.
  @Test mutating func abandonedBody_mayNotWaitInACycle() {
    let first = wait(a, b).link
    let abandoned = wait(b, a, after: first).link
    _ = graph.end(abandoned)
    #expect(wait(a, b, after: abandoned).decision == "post")
    #expect(wait(b, a, after: first).decision == "b a b")
  }

  /// Each level takes one step. A search of everything below would take minutes.
  @Test mutating func aDeepNestTakesAStepALevel() {
    var links: [WaitLink] = []
    for level in 0..<2_000 {
      let (waiter, target) = level.isMultiple(of: 2) ? (a, b) : (b, a)
      let (decision, link) = wait(waiter, target, after: links.last)
      #expect(decision == (level == 0 ? "post" : "hand over"))
      links.append(link)
    }
    for link in links.reversed() { _ = graph.end(link) }
    #expect(graph.waits(of: a).isEmpty && graph.waits(of: b).isEmpty)
  }

  @Test mutating func atTheLimitOnlyAWaitThatNeedsAnotherThreadIsRefused() {
    let waiters = (0..<WaitGraph.threadLimit).map { SerialScheduler(name: "\($0)") }
    let waits = waiters.map { wait($0, a) }
    #expect(waits.allSatisfy { $0.decision == "post" })
    let refusal = "“c” cannot wait for “a” because \(WaitGraph.threadLimit) schedulers already block"
    #expect(wait(c, a).decision.contains(refusal) && graph.waits(of: c).isEmpty)
    #expect(wait(nil, a).decision == "post", "the thread belongs to no scheduler")
    #expect(wait(a, waiters[0], after: waits[0].link).decision == "hand over")
    // A was also blocked, so there is room again when two waits have ended.
    for wait in waits[1...2] { _ = graph.end(wait.link) }
    #expect(wait(c, b).decision == "post")
  }
}
