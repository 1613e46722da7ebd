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
    /// The queue that starts it, or nil if it has been started.
    var host: Int?
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
            // Two in one queue, and one in another.
            guard third.count == 2, second != first, [0, 10, 20].contains(modes) else { continue }
            states += Walk(zip(keys, [0, 0, 1]).map { Actor(keys: $0, host: $1) }).walk()
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
            states += Walk([Actor(keys: first)] + inner).walk()
          }
        }
      }
    }
    #expect(states > (isThorough ? 10_000 : 3_000), "\(states)")
  }

  /// The same for seven operations and four keys, in orders that the machine chooses.
  @Test(arguments: SeededGenerator.seeds) func randomSequencesOfEventsKeepThePromises(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    for _ in 0..<40 {
      var actors: [Actor] = []
      for index in 0..<7 {
        let names = (["a", "b", "c", "d"] as [ExclusivityKey]).shuffled(using: &generator)
        let parent = Int.random(in: -index...index, using: &generator) - 1
        let enclosing = parent < 0 ? [] : [parent] + actors[parent].enclosing
        let keys = names.prefix(Int.random(in: 1...3, using: &generator)).map { key in
          (key, [1, 1, 2, 3, Int.max].randomElement(using: &generator) ?? 1)
        }
        let host = [nil, nil, 0, 1].randomElement(using: &generator) ?? nil
        actors.append(Actor(keys: Dictionary(uniqueKeysWithValues: keys), enclosing: enclosing, host: host))
      }
      Walk(actors).wander(&generator)
    }
  }

  /// A state that has been reached, and the promises that it must keep.
  private struct Walk {
    private final class Host: Sendable {}

    private enum Phase {
      case away
      case entered(Int)
      case gone
    }

    private static let domain = ExclusivityDomain()
    private static let hosts = [Host(), Host()]

    private let actors: [Actor]
    private var table = KeyTable<Int>()
    private var phases: [Phase]
    private var ticks = 0

    init(_ actors: [Actor]) {
      self.actors = actors
      phases = actors.map { _ in .away }
    }

    private func ticket(_ actor: Int) -> Int? { if case .entered(let ticket) = phases[actor] { ticket } else { nil } }

    private func state(_ actor: Int) -> KeyState? { ticket(actor).flatMap { table.entries[$0]?.state } }

    private func isHolding(_ actor: Int) -> Bool { state(actor) == .holding }

    private func isPermitted(_ actor: Int) -> Bool { if case .permitted? = state(actor) { true } else { false } }

    /// Costs next to nothing unless it fails.
    private func expect(_ isTrue: Bool, _ comment: @autoclosure () -> String) {
      if !isTrue { Issue.record("\(comment()), among \(actors)") }
    }

    /// Makes a change, and checks that it grants every entry that can proceed, once.
    private mutating func change(
      except actor: Int?,
      _ body: (inout KeyTable<Int>, inout [KeyTable<Int>.Effect]) -> Void
    ) {
      let before = table
      var effects: [KeyTable<Int>.Effect] = []
      body(&table, &effects)
      let granted = effects.compactMap { effect in
        switch effect {
        case .permit(let actor), .resume(let actor): actor
        default: nil
        }
      }
      expect(Set(granted).count == granted.count, "granted twice")
      for (ticket, entry) in table.entries where entry.claimant != actor {
        let old = before.entries[ticket]?.state
        let goesOn = entry.state != old && (isHolding(entry.claimant) || isPermitted(entry.claimant))
        expect(goesOn == granted.contains(entry.claimant), "\(entry.claimant) was \(old as Any), is \(entry.state)")
      }
    }

    private mutating func enter(_ actor: Int) {
      let enclosing = actors[actor].enclosing.compactMap { isHolding($0) ? self.ticket($0) : nil }
      let claims = actors[actor].keys.sorted { $0.key.description < $1.key.description }.map { key, limit in
        KeyClaim(domain: Self.domain, key: key, limit: limit)
      }
      let host = actors[actor].host.map { ObjectIdentifier(Self.hosts[$0]) }
      var new: Int?
      change(except: actor) { new = $0.enter(actor, claims, inside: enclosing, host: host, &$1) }
      guard let new else { return expect(false, "\(actor) was dropped") }
      phases[actor] = .entered(new)
    }

    private mutating func start(_ actor: Int) {
      guard let ticket = ticket(actor) else { return }
      let waits = actors[actor].enclosing.isEmpty
      var isHolding = false
      change(except: actor) { isHolding = $0.start(ticket, waits: waits, &$1) }
      expect(isHolding == self.isHolding(actor), "\(actor) got another answer")
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

    /// Remedies a deadlock.
    ///
    /// - Returns: Whether there was one.
    private mutating func remedy() -> Bool {
      if !table.mayDeadlock { return false }
      guard let remedy = table.beginDeadlockSearch().remedy() else { return false }
      var effects: [KeyTable<Int>.Effect] = []
      table.apply(remedy, &effects)
      if case .refuse(let refused) = remedy, let entry = table.entries[refused] {
        expect(!entry.enclosing.isEmpty, "only a member can be refused")
        leave(entry.claimant)
      }
      return true
    }

    private func isSomethingInside(_ actor: Int) -> Bool {
      actors.indices.contains { ticket($0) != nil && actors[$0].enclosing.contains(actor) }
    }

    private func check() {
      for queue in table.queues where queue.claimCount > 0 {
        let limits = queue.holders.compactMap { holder in
          table.entries[holder]?.claims.first { table.queues[$0.queue].id == queue.id }?.limit
        }
        expect(limits.count == queue.holders.count && limits.count <= limits.min() ?? .max, "beyond the limit")
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
          } else if rest.isPermitted(actor) || rest.state(actor) == .overdue {
            rest.start(actor)
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
        case .away where actors[actor].enclosing.allSatisfy({ isHolding($0) }): [{ $0.enter(actor) }]
        case .entered where isPermitted(actor) || state(actor) == .overdue:
          isSomethingInside(actor) ? [] : [{ $0.start(actor) }, { $0.leave(actor) }]
        // It may have timed out, or been cancelled.
        case .entered: [{ $0.leave(actor) }]
        case .away, .gone: []
        }
      }
      if ticks < 2, actors.indices.contains(where: isPermitted) { moves.append { $0.tick() } }
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
      func isWaiting(_ ticket: Int) -> Bool {
        table.entries[ticket]?.state == .waiting
      }
      func number(_ host: ObjectIdentifier?) -> Int { Self.hosts.firstIndex { ObjectIdentifier($0) == host } ?? -1 }
      func list(_ tickets: some Sequence<Int>) -> [Int] { tickets.filter(isPresent).map(actor) + [-2] }
      var result = [ticks, table.mayDeadlock ? 1 : 0]
      // The order in which they came decides when one that was deferred is requeued.
      result += list(table.entries.keys.sorted())
      for phase in phases {
        switch phase {
        case .away: result.append(-3)
        case .gone: result.append(-4)
        case .entered(let ticket):
          guard let entry = table.entries[ticket] else { continue }
          result.append(entry.host == nil ? 1 : 0)
          switch entry.state {
          case .waiting: result.append(0)
          case .preferred: result.append(1)
          case .deferred: result.append(2)
          case .permitted(let end): result += [3, end - table.epoch]
          case .overdue: result.append(4)
          case .holding: result.append(5)
          case .replaced: result.append(6)
          }
          result.append(entry.patience)
          result += list(entry.yieldsTo.sorted())
          result += list(entry.enclosing)
        }
      }
      let queues = table.queues.filter { $0.claimCount > 0 }.map { queue -> [Int] in
        var result = queue.id.key.description.utf8.map { Int($0) } + [queue.id.holder.map(actor) ?? -1]
        result += list(queue.holders.sorted())
        result += list(queue.preferred.all.filter { table.entries[$0]?.state == .preferred })
        result += list(queue.waiting.all.filter(isWaiting))
        for tickets in [queue.overdue, queue.deferred].map({ $0.mapValues { $0.sorted() } }) {
          for host in tickets.keys.sorted(by: { number($0) < number($1) }) {
            result += [number(host)] + list(tickets[host] ?? [])
          }
        }
        return result
      }
      for queue in queues.sorted(by: { $0.lexicographicallyPrecedes($1) }) { result += [-5] + queue }
      return result
    }

    /// Follows one random schedule to its end.
    func wander(_ generator: inout some RandomNumberGenerator) {
      check()
      guard let move = moves.randomElement(using: &generator) else { return }
      var next = self
      move(&next)
      next.wander(&generator)
    }
  }
}
