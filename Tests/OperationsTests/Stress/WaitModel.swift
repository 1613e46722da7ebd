import Soak

/// What up to eight participants of a random world do, and the rules by which they go on. Each participant takes its steps
/// one inside the other, keeps what they take, and ends when nothing is left to do.
///
/// Participants for which there is room go on in any order. A wait is stuck if it cannot go on in any of these orders.
final class WaitModel: Sendable {
  struct Claim {
    let key: Int
    let limit: Int
    let weight: Int
  }

  enum Step {
    /// The first step of an operation or a group.
    case start(in: Int, [Claim], after: [Int])
    case keys([Claim])
    case slot(in: Int, [Claim])
    case end(of: Int)

    var claims: [Claim] {
      switch self {
      case .start(_, let claims, _), .keys(let claims), .slot(_, let claims): claims
      case .end: []
      }
    }

    var place: Int? {
      switch self {
      case .start(let place, _, _), .slot(let place, _): place
      case .keys, .end: nil
      }
    }
  }

  struct Plan {
    /// The number of slots of a group.
    var slots: Int?
    var steps: [Step] = []
    /// The number of steps before the world is released.
    var stepsAtFirst = 0

    var isOperation: Bool { if case .start? = steps.first { true } else { false } }
  }

  /// How many steps each participant has taken. One that has ended has taken one more than it has. -1 if the queue has
  /// started an operation that must wait for its keys, because others have passed it before.
  typealias State = [Int]

  /// The slots of three queues and two open groups. The groups among the participants are the next places.
  static let limits: [Int?] = [nil, 1, 2, 1, 2]
  static let keyCount = 3

  let plans: [Plan]
  private let members: [[Int]]
  /// The innermost group around each participant that has a key, or -1.
  private let lenders: [[Int]]

  init(_ plans: [Plan]) {
    self.plans = plans
    members = plans.indices.map { group in plans.indices.filter { Self.outer(of: $0, in: plans) == group } }
    lenders = plans.indices.map { one in (0..<Self.keyCount).map { Self.lender(around: one, key: $0, in: plans) ?? -1 }
    }
  }

  static func outer(of one: Int, in plans: [Plan]) -> Int? {
    guard plans[one].isOperation, let place = plans[one].steps[0].place, place >= limits.count else { return nil }
    return place - limits.count
  }

  static func lender(around one: Int, key: Int, in plans: [Plan]) -> Int? {
    var group = outer(of: one, in: plans)
    while let next = group, !plans[next].steps[0].claims.contains(where: { $0.key == key }) {
      group = outer(of: next, in: plans)
    }
    return group
  }

  // MARK: The rules

  private func isOver(_ one: Int, _ state: State) -> Bool { state[one] > plans[one].steps.count }

  func end(_ one: Int, _ state: inout State) {
    state[one] = plans[one].steps.count + 1
    for member in members[one] where !isOver(member, state) { end(member, &state) }
  }

  private func held(_ one: Int, _ state: State) -> ArraySlice<Step> {
    isOver(one, state) ? [] : plans[one].steps.prefix(max(state[one], 0))
  }

  private func limit(of place: Int) -> Int? {
    place < Self.limits.count ? Self.limits[place] : plans[place - Self.limits.count].slots
  }

  private func hasSlot(_ place: Int, _ state: State) -> Bool {
    guard let limit = limit(of: place) else { return true }
    let counts = plans.indices.map { one in
      state[one] < 0 && plans[one].steps[0].place == place ? 1 : held(one, state).count { $0.place == place }
    }
    return counts.reduce(0, +) < limit
  }

  private func fits(_ one: Int, _ claim: Claim, _ state: State) -> Bool {
    var (weight, limit) = (claim.weight, claim.limit)
    for other in plans.indices where lenders[other][claim.key] == lenders[one][claim.key] {
      for step in held(other, state) {
        for held in step.claims where held.key == claim.key {
          (weight, limit) = (weight + held.weight, min(limit, held.limit))
        }
      }
    }
    return weight <= limit
  }

  private func canGoOn(_ one: Int, _ state: State, takingKeys: Bool = true) -> Bool {
    if isOver(one, state) || state[one] < 0 && !takingKeys { return false }
    guard state[one] < plans[one].steps.count else { return members[one].allSatisfy { isOver($0, state) } }
    let step = plans[one].steps[max(state[one], 0)]
    switch step {
    case .end(let other): return isOver(other, state)
    case .start(_, _, let others):
      if !others.allSatisfy({ isOver($0, state) }) { return false }
      if let outer = Self.outer(of: one, in: plans), state[outer] <= 0 { return false }
    case .keys, .slot: break
    }
    let hasPlace = step.place.map { state[one] < 0 || hasSlot($0, state) } ?? true
    return hasPlace && (!takingKeys || step.claims.allSatisfy { fits(one, $0, state) })
  }

  /// Whether the next step takes nothing that others could need, so that the order of such steps has no effect.
  private func takesNothing(_ one: Int, _ state: State) -> Bool {
    guard state[one] < plans[one].steps.count else { return true }
    let step = plans[one].steps[max(state[one], 0)]
    return step.claims.isEmpty && step.place.flatMap { limit(of: $0) } == nil
  }

  private func following(_ state: State) -> [State] {
    func with(_ one: Int, _ taken: Int) -> State {
      var next = state
      next[one] = taken
      return next
    }
    let able = plans.indices.filter { canGoOn($0, state) }
    if let free = able.first(where: { takesNothing($0, state) }) { return [with(free, state[free] + 1)] }
    let others = plans.indices.filter { one in
      guard case .start(1...2, let claims, _)? = plans[one].steps.first, state[one] == 0, !claims.isEmpty else {
        return false
      }
      return !able.contains(one) && canGoOn(one, state, takingKeys: false)
    }
    return able.map { with($0, max(state[$0], 0) + 1) } + others.map { with($0, -1) }
  }

  /// Whether some order lets all end, and whether some order does not. Tries all of them, unless there are too many.
  func outcomes(from state: State) -> (ends: Bool, isStuck: Bool) {
    var (toDo, seen, ends, isStuck) = ([state], Set([state]), false, false)
    while let state = toDo.popLast(), !ends || !isStuck {
      if seen.count > 5_000 { return (true, true) }
      let following = following(state)
      if following.isEmpty {
        if plans.indices.allSatisfy({ isOver($0, state) }) { ends = true } else { isStuck = true }
      }
      toDo += following.filter { seen.insert($0).inserted }
    }
    return (ends, isStuck)
  }

  func description(of state: State) -> String {
    plans.indices.map { one in
      let plan = plans[one]
      let steps = plan.steps.map { "\($0)".replacing("OperationsTests.WaitModel.", with: "") }.joined(separator: ", ")
      return "  p\(one)\(plan.slots.map { ", group of \($0)" } ?? ""): \(state[one]) of \(steps)"
    }.joined(separator: "\n")
  }
}

extension WaitModel {
  convenience init(using generator: inout SeededGenerator) {
    var plans: [Plan] = []
    for one in 0..<generator.number(3...8) {
      plans.append(Plan())
      if !generator.one(of: 3) { Self.addStart(to: one, of: &plans, &generator) }
    }
    for one in plans.indices { Self.addSteps(to: one, of: &plans, &generator) }
    self.init(plans)
  }

  private static func addStart(to one: Int, of plans: inout [Plan], _ generator: inout SeededGenerator) {
    let groups = plans.indices.filter { plans[$0].slots != nil }.map { $0 + limits.count }
    let place = (Array(limits.indices) + groups + groups).randomElement(using: &generator) ?? 0
    if generator.one(of: 4) { plans[one].slots = generator.number(1...2) }
    plans[one].steps = [.start(in: place, [], after: [])]
    let claims = generator.one(of: 2) ? claims(of: one, in: plans, &generator) : []
    let around = Set(sequence(first: one) { [plans] in outer(of: $0, in: plans) })
    let others = plans.indices.filter { plans[$0].isOperation && !around.contains($0) && generator.one(of: 6) }
    plans[one].steps = [.start(in: place, claims, after: others)]
  }

  private static func addSteps(to one: Int, of plans: inout [Plan], _ generator: inout SeededGenerator) {
    let isOperation = plans[one].isOperation
    for _ in 0..<(plans[one].slots != nil ? 0 : generator.number(isOperation ? 0...2 : 1...3)) {
      let claims = claims(of: one, in: plans, &generator)
      let others = plans.indices.filter { $0 != one && plans[$0].isOperation }
      if let other = others.randomElement(using: &generator), generator.one(of: 2) {
        plans[one].steps.append(.end(of: other))
      } else if generator.one(of: 2) {
        plans[one].steps.append(.slot(in: generator.number(0...4), generator.one(of: 3) ? claims : []))
      } else if !claims.isEmpty {
        plans[one].steps.append(.keys(claims))
      }
    }
    plans[one].stepsAtFirst = generator.one(of: 8) ? min(1, plans[one].steps.count) : plans[one].steps.count
  }

  /// Returns claims to keys that the participant has not claimed, which are not stronger than those around it.
  private static func claims(of one: Int, in plans: [Plan], _ generator: inout SeededGenerator) -> [Claim] {
    (0..<keyCount).shuffled(using: &generator).prefix(generator.one(of: 4) ? 2 : 1).compactMap { key in
      if plans[one].steps.contains(where: { $0.claims.contains { $0.key == key } }) { return nil }
      let lender = lender(around: one, key: key, in: plans)
      if let around = lender.flatMap({ plans[$0].steps[0].claims.first { $0.key == key } }), around.limit > 1 {
        return around
      }
      let limit = [1, 1, 1, 2, 3, .max].randomElement(using: &generator) ?? 1
      return Claim(key: key, limit: limit, weight: limit == .max ? 1 : generator.number(1...limit))
    }
  }
}
