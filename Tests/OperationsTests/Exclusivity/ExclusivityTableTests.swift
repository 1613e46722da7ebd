import Soak
import Testing

@testable import Operations

/// The table as a value.
struct ExclusivityTableTests {
  private typealias Table = ExclusivityTable<String>

  private var table = Table()

  /// Somebody asks, outside of everything or inside of others.
  private mutating func join(_ name: String, _ keys: ExclusivityKey..., inside outer: [Int] = []) -> Table.Joining {
    let places = table.places(for: keys, within: outer)
    return table.join(Table.Applicant(claimant: name, places: places, outer: outer)).0
  }

  @Test mutating func theFirstInTheLinesOfAllItsKeysHoldsThem() {
    #expect(join("1", "a", "b") == .granted(0))
    #expect(join("2", "b", "c") == .waiting(1))
    #expect(join("3", "c") == .waiting(2))
    #expect(join("4", "d") == .granted(3))
    #expect(table.leave(0) == ["2"])
    #expect(table.leave(1) == ["3"])
    #expect(table.leave(2).isEmpty && table.leave(3).isEmpty)
    #expect(table.isEmpty)
  }

  @Test mutating func whoeverLeavesFromTheMiddleLetsThoseBehindMoveUp() {
    _ = join("1", "a")
    _ = join("2", "a", "b")
    _ = join("3", "b")
    _ = join("4", "a")
    #expect(table.leave(1) == ["3"])
    #expect(table.leave(0) == ["4"])
  }

  @Test mutating func whatRunsInsideAHolderStandsInALineOfItsOwn() {
    #expect(join("group", "a") == .granted(0))
    #expect(join("outsider", "a") == .waiting(1))
    #expect(join("member", "a", inside: [0]) == .granted(2))
    #expect(join("sibling", "a", inside: [0]) == .waiting(3))
    #expect(join("far inside", "a", inside: [2, 0]) == .granted(4))
    let (holders, waiting) = table.claimants(of: "a")
    #expect(holders == ["group", "member", "far inside"] && waiting == ["outsider", "sibling"])
  }

  @Test mutating func aHolderStaysUntilThoseInsideHaveLeft() {
    _ = join("group", "a")
    _ = join("member", "a", inside: [0])
    _ = join("outsider", "a")
    #expect(table.leave(0).isEmpty)
    #expect(table.leave(1) == ["outsider"])
    #expect(table.leave(2).isEmpty && table.isEmpty)
  }

  @Test mutating func whatAHolderNeedsInsideGoesBeforeThoseWhoWaitForTheHolder() {
    _ = join("group", "a")
    #expect(join("waits for the group", "a", "b") == .waiting(1))
    #expect(join("waits for that", "b", "c") == .waiting(2))
    #expect(join("member", "b", inside: [0]) == .granted(3))
    #expect(join("another", "c", inside: [0]) == .granted(4))
    #expect(table.leave(3).isEmpty && table.leave(4).isEmpty)
    #expect(table.leave(0) == ["waits for the group"])
  }

  @Test mutating func butNotBeforeThoseWhoDoNot() {
    _ = join("group", "a")
    _ = join("somebody", "b")
    #expect(join("somebody else", "b") == .waiting(2))
    #expect(join("waits for the group", "a", "b") == .waiting(3))
    #expect(join("member", "b", inside: [0]) == .waiting(4))
    #expect(table.leave(1) == ["somebody else"])
    #expect(table.leave(2) == ["member"])
  }

  @Test mutating func aCircleOfHoldersIsSeen() {
    _ = join("A", "a")
    _ = join("B", "b")
    #expect(join("inside B", "a", inside: [1]) == .waiting(2))
    #expect(join("inside A", "b", inside: [0]) == .circle(key: "b", holder: "B"))
    #expect(table.leave(0) == ["inside B"])
  }

  @Test mutating func aCircleOfThreeIsSeen() {
    for (name, key) in [("A", "a"), ("B", "b"), ("C", "c")] { _ = join(name, ExclusivityKey(key)) }
    #expect(join("inside A", "b", inside: [0]) == .waiting(3))
    #expect(join("inside B", "c", inside: [1]) == .waiting(4))
    #expect(join("inside C", "d", "a", inside: [2]) == .circle(key: "a", holder: "A"))
  }

  // MARK: Slots

  /// The same for one of ours, which begins when it has a slot, too.
  private mutating func join(
    _ name: String,
    _ keys: ExclusivityKey...,
    inside outer: [Int] = [],
    in slots: Place? = nil,
    taken: [Place] = []
  ) -> (joining: Table.Joining, moves: Table.Moves) {
    table.join(
      Table.Applicant(
        claimant: name,
        places: table.places(for: keys, within: outer),
        outer: outer,
        slots: slots.map { ObjectIdentifier($0) },
        taken: taken.map { ObjectIdentifier($0) },
        isPatient: true
      )
    )
  }

  private mutating func begun(_ name: String, _ key: ExclusivityKey, in slots: Place? = nil) -> Bool {
    guard case .granted(let ticket) = join(name, key, in: slots).joining else { return false }
    return table.begin(ticket)
  }

  @Test mutating func whatRunsInsideGoesBeforeThoseWhoWaitForASlotThatTheGroupInItsWayKeeps() {
    let queue = Place()
    #expect(begun("group", "b", in: queue))
    #expect(begun("other group", "c"))
    #expect(join("next", "a", in: queue).joining == .granted(2))
    #expect(join("after that", "e", "a", in: queue).joining == .waiting(3))
    #expect(join("member", "c", inside: [0], taken: [queue]).joining == .waiting(4))
    #expect(join("member of the other", "e", inside: [1]).joining == .granted(5))
  }

  @Test mutating func whoWaitsForASlotIsSentBackIfAHolderWaitsForIt() {
    let queue = Place()
    #expect(begun("group", "b", in: queue) && begun("second", "c") && begun("third", "e"))
    #expect(join("next", "a", in: queue).joining == .granted(3))
    #expect(join("member of the third", "a", inside: [2]).joining == .waiting(4))
    #expect(join("member", "c", inside: [0], taken: [queue]).joining == .waiting(5))
    let moves = join("member of the second", "e", inside: [1]).moves
    #expect(moves.granted == ["member of the third"] && moves.revoked.map(\.claimant) == ["next"])
  }

  @Test mutating func whoHasASlotGoesBeforeThoseWhoWaitForIt() {
    let queue = Place()
    #expect(join("first", "a", in: queue).joining == .granted(0))
    #expect(join("second", "a", in: queue).joining == .waiting(1))
    let (ticket, moves) = table.waitInSlot(1)
    #expect(table.begin(ticket) && moves.revoked.map(\.claimant) == ["first"])
    #expect(table.leave(ticket) == ["first"])
    #expect(table.leave(0).isEmpty && table.isEmpty)
  }

  // MARK: Nothing is left

  @Test mutating func manyWhoLeaveFromTheMiddleLeaveNothingBehind() {
    _ = join("holder", "a")
    for _ in 0..<10 {
      for _ in 0..<500 { _ = join("waits", "a") }
      for ticket in table.tickets(at: [Table.Place(key: "a")]).dropFirst() { #expect(table.leave(ticket).isEmpty) }
      #expect(table.lines[Table.Place(key: "a")]?.slots.count ?? 0 < 128)
    }
    #expect(table.leave(0).isEmpty && table.isEmpty)
  }

  @Test mutating func manyKeysThatHaveBeenUsedLeaveNothingBehind() {
    for key in 0..<20_000 { _ = join("", ExclusivityKey("\(key)")) }
    for ticket in 0..<20_000 { _ = table.leave(ticket) }
    #expect(table.isEmpty)
  }

  // MARK: Everything that can happen

  /// Somebody who is to join and to leave, once.
  private struct Actor {
    let keys: [ExclusivityKey]
    /// What it runs inside of, from the innermost outwards.
    let outer: [Int]
    /// Where it needs the only slot before it can begin.
    var slots: Place?
  }

  private final class Place: Sendable {}

  /// Three actors, with every choice of two keys and of what they run inside of, in every order of events.
  @Test func everySequenceOfEventsKeepsThePromises() {
    let choices: [[ExclusivityKey]] = [["a"], ["b"], ["a", "b"]]
    var states = 0
    // The two keys are alike.
    for first in choices where first != ["b"] {
      for second in choices {
        for third in choices {
          for outer in [([], []), ([0], []), ([0], [0]), ([0], [1, 0]), ([], [0]), ([], [1])] as [([Int], [Int])] {
            let actors = [
              Actor(keys: first, outer: []), Actor(keys: second, outer: outer.0), Actor(keys: third, outer: outer.1),
            ]
            states += Walk(actors).walk()
          }
        }
      }
    }
    #expect(states > 10_000)
  }

  /// The same for three keys, and a queue of one slot in which whoever was granted its keys may lose them again.
  @Test func everySequenceOfEventsWithThreeKeysAndASlotKeepsThePromises() {
    let choices: [[ExclusivityKey]] = [["b", "c"], ["a", "b", "c"]]
    let queue = Place()
    var states = 0
    for second in choices {
      for third in choices {
        for outer in [([], []), ([0], []), ([], [0]), ([], [1])] as [([Int], [Int])] {
          let actors = [
            Actor(keys: ["a", "b"], outer: [], slots: queue),
            Actor(keys: second, outer: outer.0, slots: outer.0.isEmpty ? queue : nil),
            Actor(keys: third, outer: outer.1),
          ]
          states += Walk(actors).walk()
        }
      }
    }
    #expect(states > 3_000, "\(states)")
  }

  /// The same for seven actors and four keys, in orders that the machine chooses.
  @Test(arguments: SeededGenerator.seeds) func randomSequencesOfEventsKeepThePromises(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    let (queue, groups) = (Place(), (0..<7).map { _ in Place() })
    for _ in 0..<12 {
      var actors: [Actor] = []
      for index in 0..<7 {
        let keys = (["a", "b", "c", "d"] as [ExclusivityKey]).shuffled(using: &generator)
        let parent = Int.random(in: -index...index, using: &generator) - 1
        let outer = parent < 0 ? [] : [parent] + actors[parent].outer
        let places = parent < 0 ? [nil, queue] : [nil, groups[parent]]
        actors.append(
          Actor(
            keys: Array(keys.prefix(Int.random(in: 1...3, using: &generator))),
            outer: outer,
            slots: places.randomElement(using: &generator) ?? nil
          )
        )
      }
      var walk = Walk(actors)
      walk.wander(&generator)
    }
  }

  /// A state that has been reached, and the promises it has to keep.
  private struct Walk {
    /// Whoever was granted its keys may get a slot though it has lost them again.
    private enum Phase {
      case away
      case standing(Int)
      case revoked(Int)
      case inSlot(Int)
      case begun(Int)
      case gone
    }

    private let actors: [Actor]
    private var table = ExclusivityTable<Int>()
    private var phases: [Phase]

    init(_ actors: [Actor]) {
      self.actors = actors
      phases = actors.map { _ in .away }
    }

    private func ticket(_ actor: Int) -> Int? {
      switch phases[actor] {
      case .standing(let ticket), .revoked(let ticket), .inSlot(let ticket), .begun(let ticket): ticket
      case .away, .gone: nil
      }
    }

    private func hasBegun(_ actor: Int) -> Bool {
      if case .begun = phases[actor] { true } else { false }
    }

    private func hasSlot(_ actor: Int) -> Bool {
      if case .inSlot = phases[actor] { true } else { hasBegun(actor) }
    }

    private func isHolding(_ actor: Int) -> Bool {
      ticket(actor).map { table.entries[$0]?.isGranted == true } ?? false
    }

    private var holders: Set<Int> { Set(actors.indices.filter(isHolding)) }

    private func isSlotFree(for actor: Int) -> Bool {
      guard let slots = actors[actor].slots else { return true }
      return !actors.indices.contains { $0 != actor && hasSlot($0) && actors[$0].slots === slots }
    }

    /// Somebody comes, inside of what has begun.
    private mutating func join(_ actor: Int) {
      let outer = actors[actor].outer.compactMap(ticket)
      let before = holders
      let begun = Set(actors.indices.filter(hasBegun))
      let applicant = ExclusivityTable.Applicant(
        claimant: actor,
        places: table.places(for: actors[actor].keys, within: outer),
        outer: outer,
        slots: actors[actor].slots.map { ObjectIdentifier($0) },
        taken: actors[actor].outer.compactMap { actors[$0].slots.map { ObjectIdentifier($0) } },
        isPatient: true
      )
      let (joining, moves) = table.join(applicant)
      carryOut(moves)
      switch joining {
      case .granted(let ticket), .waiting(let ticket): phases[actor] = .standing(ticket)
      case .circle:
        #expect(!outer.isEmpty, "only what runs inside a holder can close a circle")
        phases[actor] = .gone
      }
      #expect(before.subtracting(holders).isSubset(of: moves.revoked.map(\.claimant)))
      #expect(holders.subtracting([actor]).subtracting(before).isSubset(of: moves.granted), "nobody was told")
      #expect(begun == Set(actors.indices.filter(hasBegun)), "somebody had begun")
    }

    private mutating func carryOut(_ moves: ExclusivityTable<Int>.Moves) {
      for (other, ticket) in moves.revoked {
        switch phases[other] {
        case .standing, .revoked: phases[other] = .revoked(ticket)
        case .away, .inSlot, .begun, .gone: Issue.record("it cannot lose its keys any more")
        }
      }
    }

    private mutating func takeSlot(_ actor: Int) {
      guard case .revoked(let old) = phases[actor] else { return }
      let (ticket, moves) = table.waitInSlot(old)
      phases[actor] = .inSlot(ticket)
      carryOut(moves)
    }

    private mutating func begin(_ actor: Int) {
      guard let ticket = ticket(actor) else { return }
      #expect(table.begin(ticket) == isHolding(actor))
      if isHolding(actor) { phases[actor] = .begun(ticket) }
    }

    /// It has finished, given up, or timed out.
    private mutating func leave(_ actor: Int) {
      guard let ticket = ticket(actor) else { return }
      let before = holders
      phases[actor] = .gone
      let granted = table.leave(ticket)
      #expect(Set(granted) == holders.subtracting(before) && granted.count == Set(granted).count)
    }

    private func isSomebodyInside(_ actor: Int) -> Bool {
      actors.indices.contains { ticket($0) != nil && actors[$0].outer.contains(actor) }
    }

    private func check() {
      for one in holders {
        for other in holders
        where one < other && !actors[other].outer.contains(one) && !actors[one].outer.contains(other) {
          #expect(Set(actors[one].keys).isDisjoint(with: actors[other].keys), "both hold a key")
        }
      }
      drain(takingSlots: false)
      if actors.contains(where: { $0.slots != nil }) { drain(takingSlots: true) }
    }

    /// Whoever can begin does, and whoever has leaves when those inside it have. If nobody else came everybody would
    /// get to the front.
    private func drain(takingSlots: Bool) {
      var rest = self
      var isMoving = true
      while isMoving {
        isMoving = false
        for actor in rest.actors.indices {
          if rest.hasBegun(actor), !rest.isSomebodyInside(actor) {
            rest.leave(actor)
            isMoving = true
          } else if takingSlots, case .revoked = rest.phases[actor], !rest.isHolding(actor), rest.isSlotFree(for: actor)
          {
            rest.takeSlot(actor)
            isMoving = true
          } else if rest.isHolding(actor), !rest.hasBegun(actor), rest.isSlotFree(for: actor) {
            rest.begin(actor)
            isMoving = true
          }
        }
      }
      #expect(
        rest.actors.indices.allSatisfy { rest.ticket($0) == nil } && rest.table.isEmpty,
        "somebody waits for ever"
      )
    }

    /// What can happen next.
    private var moves: [(inout Walk) -> Void] {
      actors.indices.flatMap { actor -> [(inout Walk) -> Void] in
        switch phases[actor] {
        case .away: actors[actor].outer.allSatisfy(hasBegun) ? [{ $0.join(actor) }] : []
        case .standing:
          isHolding(actor) && isSlotFree(for: actor)
            ? [{ $0.begin(actor) }, { $0.leave(actor) }] : [{ $0.leave(actor) }]
        case .revoked:
          if isSlotFree(for: actor) {
            [
              { [isHolding = isHolding(actor)] in isHolding ? $0.begin(actor) : $0.takeSlot(actor) },
              { $0.leave(actor) },
            ]
          } else {
            [{ $0.leave(actor) }]
          }
        case .inSlot: isHolding(actor) ? [{ $0.begin(actor) }, { $0.leave(actor) }] : [{ $0.leave(actor) }]
        case .begun: [{ $0.leave(actor) }]
        case .gone: []
        }
      }
    }

    /// - Returns: How many states there are from here on.
    func walk() -> Int {
      moves.reduce(1) { count, move in
        var next = self
        move(&next)
        next.check()
        return count + next.walk()
      }
    }

    mutating func wander(_ generator: inout SeededGenerator) {
      while let move = moves.randomElement(using: &generator) {
        move(&self)
        check()
      }
      #expect(table.isEmpty)
    }
  }
}
