import Soak
import Testing

@testable import Operations

/// The table of keys, with every order of what operations in every mode do.
struct KeyTableInterleavingTests {
  /// An operation that joins, perhaps inside others, arrives, and leaves, once.
  private struct Actor {
    let keys: [ExclusivityKey: Int]
    /// What it runs inside of, from the innermost outwards.
    var outer: [Int] = []
    /// Which queue has to start it. In hand without one.
    var home: Int?
  }

  private static let domain = ExclusivityDomain()
  private final class Home: Sendable {}
  private static let homes = [Home(), Home()]

  /// Three operations with every choice of two keys, in every mode.
  @Test func everySequenceOfEventsKeepsThePromises() {
    let choices: [[ExclusivityKey]] = [["a"], ["b"], ["a", "b"]]
    let limits = [1, 2, Int.max]
    var states = 0
    // The two keys are alike.
    for first in choices where first != ["b"] {
      for second in choices {
        for third in choices {
          for modes in 0..<27 {
            let mode = [limits[modes % 3], limits[modes / 3 % 3], limits[modes / 9]]
            let keys = zip([first, second, third], mode).map { keys, limit in
              Dictionary(uniqueKeysWithValues: keys.map { ($0, limit) })
            }
            states += Walk(keys.map { Actor(keys: $0) }).walk()
            // Two in one queue, and one in another.
            guard third.count == 2, second != first, [0, 13, 21].contains(modes) else { continue }
            states += Walk(zip(keys, [0, 0, 1]).map { Actor(keys: $0, home: $1) }).walk()
          }
        }
      }
    }
    #expect(states > 20_000, "\(states)")
  }

  /// The same for operations inside others.
  @Test func everySequenceOfEventsInsideOthersKeepsThePromises() {
    let choices: [[ExclusivityKey: Int]] = [["a": 1], ["b": 1], ["a": 1, "b": 1], ["a": 2], ["b": .max]]
    var states = 0
    for first in choices {
      for second in choices {
        for third in choices {
          for outer in [([0], []), ([0], [0]), ([0], [1, 0]), ([], [0]), ([], [1])] as [([Int], [Int])] {
            let actors = [
              Actor(keys: first), Actor(keys: second, outer: outer.0), Actor(keys: third, outer: outer.1),
            ]
            states += Walk(actors).walk()
          }
        }
      }
    }
    #expect(states > 10_000, "\(states)")
  }

  /// The same for seven operations and four keys, in orders that the machine chooses.
  @Test(arguments: SeededGenerator.seeds) func randomSequencesOfEventsKeepThePromises(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    for _ in 0..<40 {
      var actors: [Actor] = []
      for index in 0..<7 {
        let names = (["a", "b", "c", "d"] as [ExclusivityKey]).shuffled(using: &generator)
        let parent = Int.random(in: -index...index, using: &generator) - 1
        let outer = parent < 0 ? [] : [parent] + actors[parent].outer
        let keys = names.prefix(Int.random(in: 1...3, using: &generator)).map { key in
          (key, [1, 1, 2, 3, Int.max].randomElement(using: &generator) ?? 1)
        }
        let home = [nil, nil, 0, 1].randomElement(using: &generator) ?? nil
        actors.append(Actor(keys: Dictionary(uniqueKeysWithValues: keys), outer: outer, home: home))
      }
      var walk = Walk(actors)
      walk.wander(&generator)
    }
  }

  /// A state that has been reached, and the promises it has to keep.
  private struct Walk {
    private enum Phase: Hashable {
      case away
      case standing(Int)
      case gone
    }

    private let actors: [Actor]
    private var table = KeyTable<Int>()
    private var phases: [Phase]
    private var ticks = 0

    init(_ actors: [Actor]) {
      self.actors = actors
      phases = actors.map { _ in .away }
    }

    private func ticket(_ actor: Int) -> Int? { if case .standing(let ticket) = phases[actor] { ticket } else { nil } }

    private func state(_ actor: Int) -> KeyTable<Int>.State? { ticket(actor).flatMap { table.entries[$0]?.state } }

    private func isHolding(_ actor: Int) -> Bool { state(actor) == .holding }

    /// Costs next to nothing unless it fails.
    private func expect(_ isTrue: Bool, _ comment: @autoclosure () -> String) {
      if !isTrue { Issue.record("\(comment()), among \(actors)") }
    }

    /// Carries out a change, and checks that every entry that goes on because of it is told, once.
    private mutating func change(except actor: Int?, _ body: (inout KeyTable<Int>, inout KeyTable<Int>.Effects) -> Void)
    {
      let before = table
      var effects = KeyTable<Int>.Effects()
      body(&table, &effects)
      let told = effects.steps.map(\.ticket)
      expect(Set(told).count == told.count, "told twice")
      for (ticket, entry) in table.entries where entry.claimant != actor {
        let old = before.entries[ticket]?.state
        let goesOn = entry.state != old && (entry.state == .holding || entry.state == .called)
        expect(goesOn == told.contains(ticket), "\(entry.claimant) was \(String(describing: old)), is \(entry.state)")
      }
    }

    private mutating func join(_ actor: Int) {
      let outer = actors[actor].outer.compactMap { isHolding($0) ? self.ticket($0) : nil }
      let demands = actors[actor].keys.sorted { $0.key.description < $1.key.description }.map { key, limit in
        KeyTable<Int>.Demand(
          place: table.place(of: key, in: KeyTableInterleavingTests.domain, inside: outer),
          limit: limit
        )
      }
      let home = actors[actor].home.map { ObjectIdentifier(KeyTableInterleavingTests.homes[$0]) }
      let applicant = KeyTable<Int>.Applicant(claimant: actor, demands: demands, outer: outer, home: home)
      var new = 0
      change(except: actor) { new = $0.join(applicant, &$1) }
      phases[actor] = .standing(new)
    }

    private mutating func arrive(_ actor: Int) {
      guard let ticket = ticket(actor) else { return }
      let waits = actors[actor].outer.isEmpty
      var isHolding = false
      change(except: actor) { isHolding = $0.arrive(ticket, waits: waits, &$1) }
      expect(isHolding == self.isHolding(actor), "\(actor) has been told something else")
    }

    private mutating func leave(_ actor: Int) {
      guard let ticket = ticket(actor) else { return }
      phases[actor] = .gone
      change(except: actor) { $0.leave(ticket, &$1) }
    }

    private mutating func tick() {
      ticks += 1
      change(except: nil) { $0.tick(&$1) }
    }

    /// What is done about deadlocks.
    private mutating func remedy() -> Bool {
      if !table.mayBeStuck { return false }
      table.willLookForDeadlock()
      let remedy = table.remedy()
      if remedy.passing.isEmpty, remedy.refused == nil { return false }
      var effects = KeyTable<Int>.Effects()
      table.apply(remedy, &effects)
      if let refused = remedy.refused, let entry = table.entries[refused] {
        expect(!entry.outer.isEmpty, "only a member can be refused")
        leave(entry.claimant)
      }
      return true
    }

    private func isSomethingInside(_ actor: Int) -> Bool {
      actors.indices.contains { ticket($0) != nil && actors[$0].outer.contains(actor) }
    }

    private func check() {
      for line in table.lines {
        guard let line else { continue }
        let limits = line.holders.compactMap { holder in
          table.entries[holder]?.claims.first { table.lines[$0.line]?.place == line.place }?.limit
        }
        expect(limits.count == line.holders.count && limits.count <= limits.min() ?? .max, "beyond the limit")
      }
      drain()
    }

    /// Whatever can begin does, and finishes when what is inside has. If nothing else came everything would be served.
    private func drain() {
      var rest = self
      var patience = 0
      for _ in 0..<1_000 where patience < 4 {
        var isMoving = false
        for actor in rest.actors.indices {
          if rest.isHolding(actor), !rest.isSomethingInside(actor) {
            rest.leave(actor)
            isMoving = true
          } else if rest.state(actor) == .called || rest.state(actor) == .late {
            rest.arrive(actor)
            isMoving = true
          }
        }
        if isMoving { patience = 0 } else if !rest.remedy() { patience += 1 }
      }
      expect(
        rest.actors.indices.allSatisfy { rest.ticket($0) == nil } && rest.table.isEmpty,
        "\(rest.phases.indices.filter { rest.ticket($0) != nil }) wait for ever"
      )
    }

    /// What can happen next.
    private var moves: [(inout Walk) -> Void] {
      var moves = actors.indices.flatMap { actor -> [(inout Walk) -> Void] in
        switch phases[actor] {
        case .away where actors[actor].outer.allSatisfy({ isHolding($0) }): [{ $0.join(actor) }]
        case .standing where state(actor) == .called || state(actor) == .late:
          isSomethingInside(actor) ? [] : [{ $0.arrive(actor) }, { $0.leave(actor) }]
        // It may have timed out, or been cancelled.
        case .standing: [{ $0.leave(actor) }]
        case .away, .gone: []
        }
      }
      if ticks < 2, actors.indices.contains(where: { state($0) == .called }) { moves.append { $0.tick() } }
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
      for move in moves {
        var next = self
        move(&next)
        next.visit(&seen)
      }
    }

    /// The same for two states from which the same can happen.
    private var fingerprint: [Int] {
      func actor(_ ticket: Int) -> Int { table.entries[ticket]?.claimant ?? -1 }
      func isPresent(_ ticket: Int) -> Bool { table.entries[ticket] != nil }
      func number(_ home: ObjectIdentifier?) -> Int {
        KeyTableInterleavingTests.homes.firstIndex { ObjectIdentifier($0) == home } ?? -1
      }
      func list(_ tickets: some Sequence<Int>) -> [Int] { tickets.filter(isPresent).map(actor) + [-2] }
      var result = [ticks, table.mayBeStuck ? 1 : 0]
      // The order in which they came decides when one that was put aside comes back.
      result += list(table.entries.keys.sorted())
      for phase in phases {
        switch phase {
        case .away: result.append(-3)
        case .gone: result.append(-4)
        case .standing(let ticket):
          guard let entry = table.entries[ticket] else { continue }
          result += [entry.isInHand ? 1 : 0, entry.isPassing ? 1 : 0, entry.isAside ? 1 : 0]
          result.append([KeyTable<Int>.State.waiting, .called, .late, .holding].firstIndex(of: entry.state) ?? -1)
          if entry.state == .called { result.append(table.age(of: entry)) }
          result += list(entry.yieldsTo.sorted())
          result += list(entry.outer)
        }
      }
      let lines = table.lines.compactMap { $0 }.map { line -> [Int] in
        var result = line.place.key.description.utf8.map { Int($0) } + [line.place.holder.map(actor) ?? -1]
        result += list(line.holders)
        result += list(line.passing.all.filter { table.entries[$0]?.isPassing == true })
        result += list(
          line.waiting.all.filter {
            table.entries[$0].map { $0.state == .waiting && !$0.isPassing && !$0.isAside } == true
          }
        )
        for (home, tickets) in line.late.sorted(by: { number($0.key) < number($1.key) }) {
          result += [number(home)] + list(tickets)
        }
        for (home, tickets) in line.aside.sorted(by: { number($0.key) < number($1.key) }) {
          result += [number(home)] + list(tickets)
        }
        return result
      }
      for line in lines.sorted(by: { $0.lexicographicallyPrecedes($1) }) { result += [-5] + line }
      return result
    }

    mutating func wander(_ generator: inout some RandomNumberGenerator) {
      check()
      while let move = moves.randomElement(using: &generator) {
        move(&self)
        check()
      }
    }
  }
}
