import OperationsTestSupport
import Soak
import Testing

@testable import Operations

/// Who may wait for whom, against another view of the same: schedulers as locks that a logical thread, which goes from
/// one to the next by waiting, may take again while it holds them.
@Suite struct WaitGraphTests {
  /// A logical thread: the schedulers that run something of it, outermost first, and the waits that lead from each to
  /// the next.
  private struct Chain {
    var places: [Int] = []
    var links: [WaitLink] = []
    /// What it waits for and has not got.
    var wanted: Int?
  }

  private struct World {
    var generator: SeededGenerator
    var graph = WaitGraph()
    let schedulers = (0..<5).map { SerialScheduler(name: "\($0)") }
    var chains = [Chain](repeating: Chain(), count: 6)
    /// Who has it, and those who come next.
    var owners = [Int?](repeating: nil, count: 5)
    var lines = [[Int]](repeating: [], count: 5)
    var cycles = 0

    mutating func step() throws {
      let idle = chains.indices.filter { chains[$0].wanted == nil }
      guard let number = idle.randomElement(using: &generator) else {
        Issue.record("everybody waits")
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
      let link = WaitLink(
        from: schedulers[place],
        to: schedulers[target],
        after: chain.links.last,
        canServe: true
      )
      switch graph.begin(link) {
      case .handOver(let server):
        #expect(owners[target] == number, "handed over by a stranger")
        #expect(server.waiter === schedulers[target])
        #expect(server === chain.links.last { $0.waiter === schedulers[target] })
        chains[number].links.append(link)
        chains[number].places.append(target)
      case .cycle(let cycle):
        #expect(closesCycle(number, target), "there is no cycle")
        #expect(cycle.first === cycle.last)
        #expect(cycle.contains { $0 === schedulers[target] })
        cycles += 1
      case .post:
        #expect(owners[target] != number)
        #expect(!closesCycle(number, target), "it would wait for ever")
        chains[number].links.append(link)
        lines[target].append(number)
        chains[number].wanted = target
        serveNext(target)
      case .refuse: Issue.record("there are few")
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

  @Test(arguments: UInt64(1)...200)
  func nobodyWaitsForEverAndNobodyIsTurnedAwayWithoutNeed(seed: UInt64) throws {
    var world = World(generator: SeededGenerator(seed: seed))
    for _ in 0..<400 { try world.step() }
  }

  @Test func circlesComeUpInThoseWorlds() throws {
    var world = World(generator: SeededGenerator(seed: 1))
    for _ in 0..<2000 { try world.step() }
    #expect(world.cycles > 10)
  }

  private let a = SerialScheduler(name: "a")
  private let b = SerialScheduler(name: "b")
  private let c = SerialScheduler(name: "c")

  @Test func circleIsNamedInOrder() {
    var graph = WaitGraph()
    _ = graph.begin(WaitLink(from: a, to: b, after: nil, canServe: true))
    _ = graph.begin(WaitLink(from: b, to: c, after: nil, canServe: true))
    guard case .cycle(let cycle) = graph.begin(WaitLink(from: c, to: a, after: nil, canServe: true)) else {
      Issue.record("no cycle")
      return
    }
    #expect(cycle.map(\.name) == ["c", "a", "b", "c"])
  }

  @Test func waitWhoseTimeIsOverNoLongerServes() {
    var graph = WaitGraph()
    let first = WaitLink(from: a, to: b, after: nil, canServe: true)
    _ = graph.begin(first)
    _ = graph.end(first)
    guard case .post = graph.begin(WaitLink(from: b, to: a, after: first, canServe: true)) else {
      Issue.record("not posted")
      return
    }
  }

  @Test func waitThatHasEndedBlocksNobodyThoughItsThreadSleepsOn() {
    var graph = WaitGraph()
    let first = WaitLink(from: a, to: b, after: nil, canServe: true)
    _ = graph.begin(first)
    graph.finish(first)
    guard case .post = graph.begin(WaitLink(from: b, to: a, after: nil, canServe: true)) else {
      Issue.record("not posted")
      return
    }
  }

  @Test func waitWithinAnActorsJobDoesNotServe() {
    var graph = WaitGraph()
    let first = WaitLink(from: a, to: b, after: nil, canServe: false)
    _ = graph.begin(first)
    guard case .cycle(let cycle) = graph.begin(WaitLink(from: b, to: a, after: first, canServe: true)) else {
      Issue.record("no cycle")
      return
    }
    #expect(cycle.map(\.name) == ["b", "a", "b"])
  }

  /// A step a level: a search of all that is below would take minutes here.
  @Test func aDeepNestTakesAStepALevel() {
    var graph = WaitGraph()
    var links: [WaitLink] = []
    for level in 0..<2_000 {
      let pair = level.isMultiple(of: 2) ? (a, b) : (b, a)
      let link = WaitLink(from: pair.0, to: pair.1, after: links.last, canServe: true)
      switch graph.begin(link) {
      case .post: #expect(level == 0)
      case .handOver(let server): #expect(server === links.last)
      case .cycle, .refuse: Issue.record("refused")
      }
      links.append(link)
    }
    for link in links.reversed() { _ = graph.end(link) }
    #expect(!graph.isBlocked(a) && !graph.isBlocked(b))
  }

  @Test func atTheLimitOnlyAWaitThatNeedsAnotherThreadIsRefused() {
    var graph = WaitGraph()
    let waiters = (0...WaitGraph.threadLimit).map { SerialScheduler(name: "\($0)") }
    let links = waiters.dropLast().map { WaitLink(from: $0, to: a, after: nil, canServe: true) }
    for link in links {
      guard case .post = graph.begin(link) else {
        Issue.record("refused below the limit")
        return
      }
    }
    let last = waiters[WaitGraph.threadLimit]
    guard case .refuse(let count) = graph.begin(WaitLink(from: last, to: a, after: nil, canServe: true)) else {
      Issue.record("not refused")
      return
    }
    #expect(count == WaitGraph.threadLimit && !graph.isBlocked(last))
    // A thread that belongs to no scheduler, and a wait that the blocked thread of its target serves.
    guard case .post = graph.begin(WaitLink(from: nil, to: a, after: nil, canServe: true)),
      case .handOver = graph.begin(WaitLink(from: a, to: waiters[0], after: links[0], canServe: true))
    else {
      Issue.record("refused")
      return
    }
    // Its waiter is blocked, too: there is room again when two have ended.
    for link in links[1...2] { _ = graph.end(link) }
    guard case .post = graph.begin(WaitLink(from: last, to: b, after: nil, canServe: true)) else {
      Issue.record("refused after one has ended")
      return
    }
  }
}
