import OperationsTestSupport
import Soak
import Testing

@testable import Operations

/// The decisions about waits, compared with a simpler model. In the model, schedulers are locks. A logical thread goes
/// from one to the next by waiting, and may take a lock again that it holds.
@Suite struct WaitGraphTests {
  /// A logical thread: the schedulers on which it runs, outermost first, and the waits from each to the next.
  private struct Chain {
    var places: [Int] = []
    var links: [WaitLink] = []
    /// The scheduler that it waits for.
    var wanted: Int?
  }

  private struct World {
    var generator: SeededGenerator
    var graph = WaitGraph()
    let schedulers = (0..<5).map { SerialScheduler(name: "\($0)") }
    var chains = [Chain](repeating: Chain(), count: 6)
    /// The chain that holds each scheduler, and the chains that wait for it.
    var owners = [Int?](repeating: nil, count: 5)
    var lines = [[Int]](repeating: [], count: 5)
    var cycles = 0

    mutating func step() throws {
      let idle = chains.indices.filter { chains[$0].wanted == nil }
      guard let number = idle.randomElement(using: &generator) else {
        Issue.record("all chains wait")
        return
      }
      if chains[number].places.isEmpty {
        let free = owners.indices.filter { owners[$0] == nil && lines[$0].isEmpty }
        guard let place = free.randomElement(using: &generator) else { return }
        owners[place] = number
        chains[number].places = [place]
      } else if Bool.random(using: &generator) {
        try wait(number, for: Int.random(in: owners.indices, using: &generator))
      } else {
        leave(number)
      }
    }

    private mutating func wait(_ number: Int, for target: Int) throws {
      let chain = chains[number]
      guard let place = chain.places.last, place != target else { return }
      let link = WaitLink(from: schedulers[place], to: schedulers[target], after: chain.links.last, canServe: true)
      let server: WaitLink?
      do { server = try graph.begin(link) } catch {
        #expect(error.code == .waitCycle, "there are few")
        #expect(closesCycle(number, target), "there is no cycle")
        let cycle = namedSchedulers(in: error)
        #expect(cycle.first == cycle.last)
        #expect(cycle.contains { $0 == schedulers[target].name })
        cycles += 1
        return
      }
      chains[number].links.append(link)
      if let server {
        #expect(owners[target] == number, "handed over by a stranger")
        #expect(server.waiter === schedulers[target])
        #expect(server === chain.links.last { $0.waiter === schedulers[target] })
        chains[number].places.append(target)
      } else {
        #expect(owners[target] != number)
        #expect(!closesCycle(number, target), "it would wait for ever")
        lines[target].append(number)
        chains[number].wanted = target
        serveNext(target)
      }
    }

    private mutating func leave(_ number: Int) {
      let place = chains[number].places.removeLast()
      if let link = chains[number].links.popLast() {
        let left = graph.end(link)
        #expect(left.isEmpty)
      }
      if !chains[number].places.contains(place) {
        owners[place] = nil
        serveNext(place)
      }
    }

    private mutating func serveNext(_ place: Int) {
      guard owners[place] == nil, let next = lines[place].first else { return }
      lines[place].removeFirst()
      owners[place] = next
      chains[next].wanted = nil
      chains[next].places.append(place)
    }

    private func closesCycle(_ number: Int, _ target: Int) -> Bool {
      var wanted: Int? = target
      while let place = wanted, let owner = owners[place] {
        if owner == number { return chains[number].places.contains(place) && place != target }
        wanted = chains[owner].wanted
      }
      return false
    }
  }

  @Test(arguments: UInt64(1)...(isThorough ? 200 : 50))
  func randomWaits_areRefusedOnlyInACycle(seed: UInt64) throws {
    var world = World(generator: SeededGenerator(seed: seed))
    for _ in 0..<400 { try world.step() }
  }

  @Test func circlesComeUpInThoseWorlds() throws {
    var world = World(generator: SeededGenerator(seed: 1))
    for _ in 0..<2000 { try world.step() }
    #expect(world.cycles > 10)
  }

  // MARK: Decisions

  private let a = SerialScheduler(name: "a")
  private let b = SerialScheduler(name: "b")
  private let c = SerialScheduler(name: "c")
  private var graph = WaitGraph()

  /// Begins a wait.
  private mutating func wait(
    _ waiter: SerialScheduler?,
    _ target: SerialScheduler,
    after previous: WaitLink? = nil,
    canServe: Bool = true
  ) -> (decision: String, link: WaitLink) {
    let link = WaitLink(from: waiter, to: target, after: previous, canServe: canServe)
    do {
      guard let server = try graph.begin(link) else { return ("post", link) }
      return (server === previous ? "hand over" : "hand over to another", link)
    } catch {
      return (error.code == .waitCycle ? namedSchedulers(in: error).joined(separator: " ") : error.message, link)
    }
  }

  @Test mutating func waitWhoseTimeIsOver_doesNotServe() {
    let first = wait(a, b).link
    _ = graph.end(first)
    // A body that B goes on with is not run in the middle of what A does now.
    _ = wait(a, c)
    #expect(wait(b, a, after: first).decision == "post")
  }

  @Test mutating func waitFromOutsideAChain_isNotServedInTheMiddleOfIt() {
    _ = wait(b, a, after: wait(a, b).link)
    for target in [a, b] {
      for waiter in [nil, c] {
        let (decision, link) = wait(waiter, target)
        #expect(decision == "post")
        _ = graph.end(link)
      }
    }
  }

  @Test mutating func whatIsBelowAnAbandonedBodyIsStillServed() {
    let second = wait(b, c, after: wait(a, b).link).link
    let abandoned = wait(c, b, after: second)
    #expect(abandoned.decision == "hand over")
    _ = graph.end(abandoned.link)
    // The abandoned body goes on above the wait of B, inside the body that A waits for.
    #expect(wait(b, a, after: abandoned.link).decision == "hand over to another")
  }

  @Test mutating func whatIsBelowAWaitThatHasEndedIsStillServed() {
    let second = wait(b, a, after: wait(a, b).link)
    let abandoned = wait(a, b, after: second.link)
    #expect(second.decision == "hand over" && abandoned.decision == "hand over")
    _ = graph.end(abandoned.link)
    graph.finish(second.link)
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

/// Returns the names in the message of an error, in order.
private func namedSchedulers(in error: OperationError) -> [String] {
  error.message.split(separator: "“").dropFirst().map { String($0.prefix { $0 != "”" }) }
}
