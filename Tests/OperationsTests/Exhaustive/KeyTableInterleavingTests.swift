import Soak
import Testing

@testable import Operations

/// The table of keys, with every order of what operations in every mode do.
struct KeyTableInterleavingTests {
  /// An operation that enters, possibly inside others, starts and leaves, once.
  private struct Actor {
    let keys: [ExclusivityKey: Int]
    /// The operations around it, from the innermost outwards.
    var enclosing: [Int] = []
    var home = Home.none
  }

  /// What starts an operation.
  private enum Home {
    case none
    case queue
    /// A group with one slot.
    case group
  }

  /// Three operations with every choice of two keys, in every mode.
  @Test func everySequenceOfEventsKeepsThePromises() {
    let choices: [[ExclusivityKey]] = [["a"], ["b"], ["a", "b"]]
    let limits = [1, 2, Int.max]
    var states = 0
    // The two keys are alike.
    for first in choices where first != ["b"] {
      for second in choices {
        for third in choices {
          for modes in stride(from: 0, to: 27, by: isThorough ? 1 : 10) {
            let mode = [limits[modes % 3], limits[modes / 3 % 3], limits[modes / 9]]
            let keys = zip([first, second, third], mode).map { keys, limit in
              Dictionary(uniqueKeysWithValues: keys.map { ($0, limit) })
            }
            states += Walk(keys.map { Actor(keys: $0) }).walk()
            // Each waits to be started.
            guard third.count == 2, (isThorough ? [0, 10, 20] : [10]).contains(modes) else { continue }
            for home in [Home.queue, .group] { states += Walk(keys.map { Actor(keys: $0, home: home) }).walk() }
          }
        }
      }
    }
    #expect(states > (isThorough ? 20_000 : 3_000), "\(states)")
  }

  /// The same for operations inside others.
  @Test func everySequenceOfEventsInsideOthersKeepsThePromises() {
    let choices: [[ExclusivityKey: Int]] = [["a": 1], ["b": 1], ["a": 1, "b": 1], ["a": 2], ["b": .max]]
    var states = 0
    for first in choices.prefix(isThorough ? 5 : 3) {
      for second in choices {
        for third in choices.prefix(isThorough ? 5 : 3) {
          for enclosing in [([0], []), ([0], [0]), ([0], [1, 0]), ([], [0]), ([], [1])] as [([Int], [Int])] {
            let inner = [Actor(keys: second, enclosing: enclosing.0), Actor(keys: third, enclosing: enclosing.1)]
            if isStronger(second, than: [first]) || isStronger(third, than: [first, second]) { continue }
            states += Walk([Actor(keys: first)] + inner).walk()
            // The members wait for slots.
            guard first == ["a": 1] else { continue }
            for home in isThorough ? [Home.queue, .group] : [.group] {
              let members = inner.map { Actor(keys: $0.keys, enclosing: $0.enclosing, home: home) }
              states += Walk([Actor(keys: first)] + members).walk()
            }
          }
        }
      }
    }
    #expect(states > (isThorough ? 10_000 : 3_000), "\(states)")
  }

  /// Whether a claim would be refused inside one of the others.
  private func isStronger(_ keys: [ExclusivityKey: Int], than others: [[ExclusivityKey: Int]]) -> Bool {
    others.contains { other in keys.contains { key, limit in other[key].map { $0 > 1 && limit < $0 } ?? false } }
  }

  /// A state that has been reached, and the promises that it must keep.
  private struct Walk {
    private enum Phase {
      case outside
      case entered(KeyTicket)
      case gone
    }

    private static let domain = ExclusivityDomain()

    private let actors: [Actor]
    private var table = KeyTable()
    private var phases: [Phase]
    private var passes = 0
    private var steps = 0
    /// Each operation has a group inside, and the last group is in none.
    private var groups: [TestGroup]

    init(_ actors: [Actor]) {
      self.actors = actors
      groups = (0...actors.count).map { _ in TestGroup(1) }
      phases = actors.map { _ in .outside }
    }

    private func actor(_ claimant: KeyClaimant?) -> Int? { claimant?.name.flatMap { Int($0) } }

    /// The group that starts an actor, if one does.
    private func group(_ actor: Int) -> Int? {
      actors[actor].home == .group ? actors[actor].enclosing.first ?? actors.count : nil
    }

    private func place(_ actor: Int) -> KeyPlace {
      if let group = group(actor) { return groups[group].room.place }
      return actors[actor].home == .queue ? .queue(ObjectIdentifier(Self.domain)) : .started
    }

    private func ticket(_ actor: Int) -> KeyTicket? {
      if case .entered(let ticket) = phases[actor] { ticket } else { nil }
    }

    private func state(_ actor: Int) -> KeyState? { ticket(actor).flatMap { table.state(of: $0) } }

    private func isHolding(_ actor: Int) -> Bool { state(actor) == .holding }

    private func isCalled(_ actor: Int) -> Bool { state(actor)?.isCalled == true }

    /// Costs next to nothing unless it fails.
    private func expect(_ isTrue: Bool, _ comment: @autoclosure () -> String) {
      if !isTrue { Issue.record("\(comment()), among \(actors)") }
    }

    /// Makes a change, and checks that it calls every entry that can proceed, once.
    private mutating func change(
      except actor: Int?,
      _ body: (inout KeyTable, inout [KeyTable.Effect]) -> Void
    ) {
      // The engine of its group makes the change.
      let group = actor.flatMap { self.group($0) }
      change(except: actor) { groups, table, effects in
        guard let group else { return body(&table, &effects) }
        groups[group].givingSlots(in: &table) { body(&$0, &effects) }
      }
    }

    private mutating func change(
      except actor: Int?,
      _ body: (inout [TestGroup], inout KeyTable, inout [KeyTable.Effect]) -> Void
    ) {
      let before = table
      var effects: [KeyTable.Effect] = []
      for group in groups { group.announce() }
      // The slot of a member is free before it leaves.
      if let actor, let group = group(actor), isHolding(actor) { groups[group].returnSlot(in: &table) }
      body(&groups, &table, &effects)
      table.serve(&effects)
      for group in groups.indices { while groups[group].answer(&table, &effects) {} }
      var called: [Int] = []
      for case .call(let claimant, let isAnswered) in effects {
        guard let actor = self.actor(claimant), group(actor) == nil else { continue }
        called.append(actor)
        expect(isAnswered == isHolding(actor), "\(actor) does not know whether it holds its keys")
      }
      expect(Set(called).count == called.count, "called twice")
      for entry in table.entries.all {
        guard let other = self.actor(table.claimant(entry.ticket)), other != actor, group(other) == nil else {
          continue
        }
        let state = before.state(of: entry.ticket)
        let hasTurn = entry.state.isHolding || entry.state.isCalled
        let isCalled = state?.isHolding == false && hasTurn && state != entry.state
        // Others pass one that has not been started in time.
        let isPassed = state?.isCalled == true && !entry.state.isHolding
        expect(isCalled == called.contains(other) || isPassed, "\(other) is \(entry.state)")
      }
    }

    private mutating func enter(_ actor: Int) {
      let enclosing = actors[actor].enclosing.compactMap { isHolding($0) ? self.ticket($0) : nil }
      let claims = actors[actor].keys.sorted { $0.key.description < $1.key.description }.map { key, limit in
        KeyClaim(domain: Self.domain, key: key, limit: limit)
      }
      let (group, place) = (group(actor), place(actor))
      let claimant = TestClaimant("\(actor)", group.map { groups[$0].room })
      claimant.claims = claims
      change(except: actor) { groups, table, effects in
        guard let group else { return table.enter(claimant, inside: enclosing, at: place, &effects) }
        groups[group].enter(claimant, inside: enclosing, in: &table, &effects)
      }
      guard let new = claimant.ticket, table[new] != nil else { return expect(false, "\(actor) was dropped") }
      phases[actor] = .entered(new)
    }

    private mutating func start(_ actor: Int) {
      guard let ticket = ticket(actor) else { return }
      change(except: actor) { $0.comeBack(ticket, at: .started, &$1) }
    }

    /// Pauses, or gains a dependency.
    private mutating func stepAside(_ actor: Int) {
      guard let ticket = ticket(actor) else { return }
      steps += 1
      change(except: actor) { $0.stepAside(ticket, &$1) }
    }

    private mutating func comeBack(_ actor: Int) {
      guard let ticket = ticket(actor), let claimant = table.claimant(ticket) else { return }
      let (group, place) = (group(actor), place(actor))
      change(except: actor) { groups, table, effects in
        guard let group else { return table.comeBack(ticket, at: place, &effects) }
        groups[group].enter(claimant, inside: [], in: &table, &effects)
      }
    }

    private mutating func leave(_ actor: Int) {
      guard let ticket = ticket(actor) else { return }
      change(except: actor) { $0.leave(ticket, &$1) }
      phases[actor] = .gone
    }

    /// Time passes, in which no called operation has been started.
    private mutating func pass() {
      passes += 1
      table.now += 100_000
      change(except: nil) { $0.timeDidPass(&$1) }
    }

    /// Lets a member pass, or refuses the one that entered last, of those that wait for each other.
    ///
    /// - Returns: Whether there was one.
    private mutating func refuse() -> Bool {
      let tickets = table.entries.all.map(\.ticket).sorted()
      let nodes = Dictionary(uniqueKeysWithValues: zip(tickets, tickets.indices))
      var (waits, demands) = (tickets.map { _ in [Int]() }, [Int: KeyDemand]())
      for (node, ticket) in tickets.enumerated() {
        if table.state(of: ticket) == .holding {
          waits[node] = tickets.filter { table[$0]?.enclosing.contains(ticket) == true }.compactMap { nodes[$0] }
        }
        for (obstacle, _) in table.obstacles(of: ticket) {
          var demand = KeyDemand(obstacle)
          waits[node].append(waits.count)
          let users = table.users(of: obstacle).first.compactMap { user in nodes[user.ticket].map { ($0, user) } }
          for (index, user) in users { demand?.add(user.ticket, user.share, of: index) }
          demands[waits.count] = demand
          waits.append(users.map(\.0))
        }
      }
      let stuck = WaitOrder(waits, demands: demands).stuck.flatMap(\.items).filter { $0 < tickets.count }.map {
        tickets[$0]
      }
      if let passing = stuck.filter({ table.mayPass($0) }).min() {
        change(except: nil) { $0.prefer(passing, &$1) }
        return true
      }
      let victims = stuck.filter { table.state(of: $0) == .waiting }
      guard let victim = victims.max(), let actor = actor(table.claimant(victim)) else { return false }
      expect(!actors[actor].enclosing.isEmpty, "only a member can be refused")
      leave(actor)
      return true
    }

    private func isSomethingInside(_ actor: Int) -> Bool {
      actors.indices.contains { ticket($0) != nil && actors[$0].enclosing.contains(actor) }
    }

    private func check() {
      for group in groups.indices {
        let members = actors.indices.filter { self.group($0) == group }
        expect(groups[group].freeSlots + members.count(where: isHolding) == 1, "a slot was lost, or taken twice")
        expect(groups[group].freeSlots == 0 || !members.contains(where: isCalled), "a slot is free for a called member")
      }
      for use in table.uses.indices.map({ table.uses[$0] }) where use.claimCount > 0 {
        let claims = use.holders.tickets.compactMap { holder in
          table[holder]?.shares.first { table.uses[$0.use].id == use.id }
        }
        let weight = claims.map(\.weight).reduce(0, +)
        expect(claims.count == use.holders.count, "a holder is gone")
        expect(weight == use.holders.sum && weight <= claims.map(\.limit).min() ?? .max, "beyond the limit")
      }
    }

    /// What an actor does next without a time limit or a refusal.
    private func step(of actor: Int) -> ((inout Walk) -> Void)? {
      if state(actor) == .away { return { $0.comeBack(actor) } }
      if isSomethingInside(actor) { return nil }
      if isHolding(actor) { return { $0.leave(actor) } }
      guard isCalled(actor), group(actor) == nil else { return nil }
      return { $0.start(actor) }
    }

    /// Whatever can begin does, and finishes when what is inside has. If nothing else came everything would be served.
    private func drain() {
      var rest = self
      for _ in 0..<1_000 {
        var isMoving = false
        for actor in actors.indices {
          guard let step = rest.step(of: actor) else { continue }
          step(&rest)
          isMoving = true
        }
        if !isMoving, !rest.refuse() { break }
      }
      expect(
        rest.actors.indices.allSatisfy { rest.ticket($0) == nil } && rest.table.isEmpty,
        "\(rest.phases.indices.filter { rest.ticket($0) != nil }) wait for ever"
      )
    }

    private var moves: [(inout Walk) -> Void] {
      var moves = actors.indices.flatMap { actor -> [(inout Walk) -> Void] in
        switch phases[actor] {
        case .outside where actors[actor].enclosing.allSatisfy({ isHolding($0) }): [{ $0.enter(actor) }]
        case .entered where isCalled(actor):
          isSomethingInside(actor) ? [] : (group(actor) == nil ? [{ $0.start(actor) }] : []) + [{ $0.leave(actor) }]
        case .entered where state(actor) == .away: [{ $0.comeBack(actor) }, { $0.leave(actor) }]
        // It may have timed out, or been cancelled.
        case .entered where steps == 0 && !isSomethingInside(actor): [{ $0.leave(actor) }, { $0.stepAside(actor) }]
        case .entered: [{ $0.leave(actor) }]
        case .outside, .gone: []
        }
      }
      if passes < 2, actors.indices.contains(where: { isCalled($0) && group($0) == nil }) { moves.append { $0.pass() } }
      return moves
    }

    /// - Returns: How many states there are from here on.
    func walk() -> Int {
      var seen: Set<[Int]> = []
      visit(&seen)
      return seen.count
    }

    private func visit(_ seen: inout Set<[Int]>) {
      guard seen.insert(fingerprint).inserted else { return }
      check()
      // Otherwise the walk visits the state after each step of a drain.
      if !actors.indices.contains(where: { step(of: $0) != nil }) { drain() }
      for move in moves {
        var next = self
        move(&next)
        next.visit(&seen)
      }
    }

    /// The same for two states from which the same can happen.
    private var fingerprint: [Int] {
      func list(_ tickets: some Sequence<KeyTicket>) -> [Int] {
        tickets.compactMap { actor(table.claimant($0)) } + [-2]
      }
      var result = [passes, steps] + groups.map(\.freeSlots) + list(table.entries.all.map(\.ticket).sorted())
      for phase in phases {
        switch phase {
        case .outside: result.append(-3)
        case .gone: result.append(-4)
        case .entered(let ticket):
          guard let entry = table[ticket] else { continue }
          result.append(entry.place == .started ? 1 : 0)
          switch entry.state {
          case .waiting: result.append(0)
          case .called(let time): result.append(time == nil ? 1 : 2)
          case .holding: result.append(3)
          case .replaced: result.append(4)
          case .away: result.append(5)
          case .lending: result.append(6)
          }
          result += list(entry.enclosing)
        }
      }
      return result
    }
  }
}
