import Foundation
import OperationsTestSupport
import Soak
import Testing

@testable import Operations

/// Random operations, groups and tasks that hold keys and slots while they wait for others. A world is brought to a state
/// of holding and waiting, one step after another, and then released. A model of the rules tries all orders in which it
/// can go on. If all of them end, no wait gives way. If none does, waits give way, but no more than necessary.
///
/// A failure contains the world, and `RANDOM_GRAPH_SEED=17 swift test --filter RandomWait` replays a seed.
@Suite(.timeLimit(.minutes(5)))
struct RandomWaitTests {
  private struct Claim: Hashable {
    let key: Int
    let limit: Int
    let weight: Int
  }

  private enum Step {
    /// The first step of an operation or a group.
    case start(place: Int, [Claim], after: [Int])
    case keys([Claim])
    case slot(place: Int, [Claim])
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

  /// What something does, one inside the other, until it ends.
  private struct Plan {
    /// The number of slots of a group.
    var slots: Int?
    var steps: [Step] = []
    /// The number of steps before the world is released.
    var stepsAtFirst = 0
  }

  // MARK: The model

  /// The places are three queues, two open groups, and the groups among the participants.
  private static let limits: [Int?] = [nil, 1, 2, 1, 2]

  private struct Model: Hashable {
    var plans: [Plan]
    /// The number of steps that have been taken. -1 before an operation is added.
    var taken: [Int]
    var over: Set<Int> = []
    /// In order of arrival.
    var waiting: [Int] = []
    var closedPlaces: Set<Int> = []
    var closedKeys: Set<Int> = []

    static func == (left: Self, right: Self) -> Bool {
      (left.taken, left.over, left.waiting) == (right.taken, right.over, right.waiting)
    }

    func hash(into hasher: inout Hasher) {
      hasher.combine(taken)
      hasher.combine(over)
      hasher.combine(waiting)
    }

    func outer(_ one: Int) -> Int? {
      guard case .start(let place, _, _)? = plans[one].steps.first, place >= limits.count else { return nil }
      return place - limits.count
    }

    func members(of group: Int) -> [Int] { plans.indices.filter { outer($0) == group } }

    func isStart(_ one: Int) -> Bool { if case .start? = next(one) { true } else { false } }

    private func held(_ one: Int) -> ArraySlice<Step> { over.contains(one) ? [] : plans[one].steps.prefix(max(taken[one], 0)) }

    private func next(_ one: Int) -> Step? {
      plans[one].steps.indices.contains(taken[one]) ? plans[one].steps[taken[one]] : nil
    }

    private func hasSlot(_ place: Int?) -> Bool {
      guard let place else { return true }
      if closedPlaces.contains(place) { return false }
      let limit = place < limits.count ? limits[place] : plans[place - limits.count].slots
      return plans.indices.map { held($0).count { $0.place == place } }.reduce(0, +) < limit ?? .max
    }

    /// The innermost group around something that has a key.
    func holder(around one: Int, _ key: Int) -> Int? {
      var group = outer(one)
      while let next = group, !plans[next].steps.contains(where: { $0.claims.contains { $0.key == key } }) {
        group = outer(next)
      }
      return group
    }

    private func fits(_ one: Int, _ claim: Claim) -> Bool {
      if closedKeys.contains(claim.key) { return false }
      let line = plans.indices.filter { holder(around: $0, claim.key) == holder(around: one, claim.key) }
      let holders = line.flatMap { held($0).flatMap(\.claims) }.filter { $0.key == claim.key } + [claim]
      // Those that have no slot are stepped over.
      let isPassing = waiting.prefix { $0 != one }.contains { other in
        guard line.contains(other), let step = next(other), hasSlot(step.place) else { return false }
        return step.claims.contains { $0.key == claim.key }
      }
      return !isPassing && holders.map(\.weight).reduce(0, +) <= holders.map(\.limit).min() ?? 0
    }

    private func mayArrive(_ one: Int) -> Bool {
      if taken[one] < 0 || over.contains(one) || waiting.contains(one) { return false }
      guard case .start(_, _, let others) = next(one) else { return next(one) != nil }
      return over.isSuperset(of: others) && outer(one).map { taken[$0] > 0 } ?? true
    }

    private func canGoOn(_ one: Int) -> Bool {
      guard let step = next(one) else { return false }
      if case .end(let other) = step { return over.contains(other) }
      return hasSlot(step.place) && step.claims.allSatisfy { fits(one, $0) }
    }

    /// What follows at once while everything holds what it has.
    mutating func settle(adding one: Int) {
      if taken[one] < 0 { taken[one] = 0 } else { waiting.append(one) }
      while true {
        if let next = waiting.first(where: canGoOn) {
          grant(next)
        } else if let next = plans.indices.first(where: { isStart($0) && mayArrive($0) }) {
          waiting.append(next)
        } else {
          return
        }
      }
    }

    private mutating func grant(_ one: Int) {
      waiting.removeAll { $0 == one }
      taken[one] += 1
    }

    mutating func end(_ one: Int) {
      over.insert(one)
      waiting.removeAll { $0 == one }
      for member in members(of: one) where !over.contains(member) { end(member) }
    }

    private var following: [Self] {
      func with(_ change: (inout Self) -> Void) -> Self {
        var copy = self
        change(&copy)
        return copy
      }
      return plans.indices.compactMap { one in
        if waiting.contains(one) { return canGoOn(one) ? with { $0.grant(one) } : nil }
        if mayArrive(one) { return with { $0.waiting.append(one) } }
        if over.contains(one) || next(one) != nil { return nil }
        return over.isSuperset(of: members(of: one)) ? with { $0.end(one) } : nil
      }
    }

    /// Whether some order ends, and whether some order does not.
    var outcomes: (ends: Bool, isStuck: Bool) {
      var (toDo, seen, ends, isStuck) = ([self], Set([self]), false, false)
      while let state = toDo.popLast(), !ends || !isStuck {
        if seen.count > 20_000 { return (true, true) }
        let following = state.following
        if following.isEmpty { if state.over.count == plans.count { ends = true } else { isStuck = true } }
        toDo += following.filter { seen.insert($0).inserted }
      }
      return (ends, isStuck)
    }
  }
  // MARK: Worlds

  private struct Maker {
    var generator: SeededGenerator

    mutating func model() -> Model {
      var model = Model(plans: [], taken: [])
      for one in 0..<generator.number(3...7) { add(one, to: &model) }
      for one in model.plans.indices { addSteps(to: one, of: &model) }
      if generator.one(of: 8) { model.closedPlaces = [generator.number(0...4)] }
      let keysOfGroups = model.plans.filter { $0.slots != nil }.flatMap { $0.steps.flatMap(\.claims) }.map(\.key)
      if generator.one(of: 8) { model.closedKeys = Set([generator.number(0...2)]).subtracting(keysOfGroups) }
      return model
    }

    private mutating func add(_ one: Int, to model: inout Model) {
      let isTask = generator.one(of: 3)
      model.plans.append(Plan(slots: !isTask && generator.one(of: 4) ? generator.number(1...2) : nil))
      model.taken.append(isTask ? 0 : -1)
      if isTask { return }
      let groups = model.plans.indices.dropLast().filter { model.plans[$0].slots != nil }.map { $0 + limits.count }
      let place = (Array(limits.indices) + groups + groups).randomElement(using: &generator) ?? 0
      model.plans[one].steps = [.start(place: place, [], after: [])]
      var outer = [one]
      while let next = model.outer(outer[0]) { outer.insert(next, at: 0) }
      let claims = generator.one(of: 2) ? claims(of: one, in: model) : []
      let others = model.plans.indices.filter { model.taken[$0] < 0 && !outer.contains($0) && generator.one(of: 6) }
      model.plans[one].steps = [.start(place: place, claims, after: others)]
    }

    private mutating func addSteps(to one: Int, of model: inout Model) {
      if model.plans[one].slots == nil {
        for _ in 0..<generator.number(model.taken[one] < 0 ? 0...2 : 1...3) {
          let claims = claims(of: one, in: model)
          let others = model.plans.indices.filter { $0 != one && model.taken[$0] < 0 }
          if let other = others.randomElement(using: &generator), generator.one(of: 2) {
            model.plans[one].steps.append(.end(of: other))
          } else if generator.one(of: 2) {
            let place = generator.number(0...4)
            model.plans[one].steps.append(.slot(place: place, generator.one(of: 3) ? claims : []))
          } else if !claims.isEmpty {
            model.plans[one].steps.append(.keys(claims))
          }
        }
      }
      let count = model.plans[one].steps.count
      model.plans[one].stepsAtFirst = generator.one(of: 6) ? min(1, count) : count
    }

    /// Claims that are not stronger than those around them.
    private mutating func claims(of one: Int, in model: Model) -> [Claim] {
      let count = generator.one(of: 4) ? 2 : 1
      return (0..<3).shuffled(using: &generator).prefix(count).compactMap { key in
        let group = model.holder(around: one, key)
        let around = group.flatMap { model.plans[$0].steps.flatMap(\.claims).first { $0.key == key } }
        let isTaken = model.plans[one].steps.contains { $0.claims.contains { $0.key == key } }
        if isTaken || around?.limit ?? 1 > 1 { return nil }
        let limit = [1, 1, 1, 2, 3, .max].randomElement(using: &generator) ?? 1
        return Claim(key: key, limit: limit, weight: limit == .max ? 1 : generator.number(1...limit))
      }
    }
  }

  private final class World: Sendable {
    static let keys: [ExclusivityKey] = ["a", "b", "c"]

    let plans: [Plan]
    let domain = ExclusivityDomain()
    private let queues = [OperationQueue(), .limited(to: 1), .limited(to: 2)]
    private let groups = [1, 2].map { GroupOperation("open \($0)", maxConcurrentOperationCount: $0).started() }
    private let operations = Locked<[Int: AsyncOperation]>([:])
    private let taken: Locked<[Int]>
    private let over = Locked<Set<Int>>([])
    private let begun = Locked<Set<String>>([])
    private let gates: [[Gate]]
    private let released = Gate()
    /// What the participants have been refused, by the message.
    let refusals = Locked<[(one: Int, error: OperationError)]>([])

    init(_ model: Model) {
      plans = model.plans
      taken = Locked(model.taken.map { max($0, 0) })
      gates = plans.map { plan in plan.steps.map { _ in Gate() } }
      for (one, plan) in plans.enumerated() {
        let isTask = model.taken[one] == 0
        if isTask { continue }
        let operation: AsyncOperation
        if let slots = plan.slots {
          let group = GroupOperation([], maxConcurrentOperationCount: slots)
          group.staysOpen = true
          group.addObserver(OperationObserver(didStart: { [taken] _ in taken.withLock { $0[one] = 1 } }))
          operation = group
        } else {
          operation = TaskOperation { try await self.run(one, from: 1) }
        }
        guard case .start(_, let claims, let others)? = plan.steps.first else { continue }
        for claim in claims {
          let key = Self.keys[claim.key]
          let all = KeyClaim(domain: domain, key: key, limit: claim.limit, weight: claim.weight, policy: .wait)
          operation.request([all])
        }
        operations.withLock { operations in
          for other in others { if let other = operations[other] { other ==> operation } }
          operations[one] = operation.named("p\(one)")
        }
      }
      for place in model.closedPlaces { suspend(place, true) }
      for key in model.closedKeys { domain.setLimit(0, for: Self.keys[key]) }
      for one in plans.indices where model.taken[one] == 0 {
        Task.detached {
          try? await self.run(one, from: 0)
          self.over.withLock { _ = $0.insert(one) }
        }
      }
    }

    private func operation(_ one: Int) -> AsyncOperation? { operations.withLock { $0[one] } }

    private func suspend(_ place: Int, _ isSuspended: Bool) {
      if place < 3 { queues[place].isSuspended = isSuspended } else { groups[place - 3].isSuspended = isSuspended }
    }

    @concurrent private func run(_ one: Int, from index: Int) async throws {
      taken.withLock { $0[one] = index }
      guard index < plans[one].steps.count else { return await released.opened() }
      await gates[one][index].opened()
      let (name, step) = ("p\(one).\(index)", plans[one].steps[index])
      let claims = step.claims.map { claim -> ExclusivityClaim in
        .limited(Self.keys[claim.key], to: claim.limit, weight: claim.weight)
      }
      do {
        switch step {
        case .start: break
        case .keys:
          try await withKeys(claims[0], claims[claims.count - 1], in: domain, name: name) {
            try await run(one, from: index + 1)
          }
        case .slot(let place, _):
          let body = { @Sendable in try await self.run(one, from: index + 1) }
          switch (place < 3, claims.isEmpty) {
          case (true, true): try await queues[place].withSlot(name, body)
          case (false, true): try await groups[place - 3].withSlot(name, body)
          case (true, false):
            try await queues[place].withSlot(name, holding: claims[0], claims[claims.count - 1], in: domain, body)
          case (false, false):
            try await groups[place - 3].withSlot(name, holding: claims[0], claims[claims.count - 1], in: domain, body)
          }
        case .end(let other):
          begun.withLock { _ = $0.insert(name) }
          if let operation = operation(other) { try await end(of: operation) }
          try await run(one, from: index + 1)
        }
      } catch let error as OperationError {
        refuse(one, error)
        throw error
      }
    }

    /// Throws only if the wait is refused.
    private func end(of operation: AsyncOperation) async throws {
      do { try await operation.completed() } catch let error as OperationError {
        let isOther = operation.errors.contains { ($0 as? OperationError)?.message == error.message }
        if !isOther { throw error }
      } catch {}
    }

    private func refuse(_ one: Int, _ error: OperationError) {
      refusals.withLock { all in
        if !all.contains(where: { $0.error.message == error.message }) { all.append((one, error)) }
      }
    }

    /// Lets something take its next step.
    func drive(_ one: Int, from index: Int) {
      guard index < 0, let operation = operation(one), case .start(let place, _, _)? = plans[one].steps.first else {
        return gates[one][index].open()
      }
      switch place {
      case 0...2: queues[place].addOperation(operation)
      case 3...4: groups[place - 3].addOperation(operation)
      default: (self.operation(place - 5) as? GroupOperation)?.addOperation(operation)
      }
    }

    /// Whether everything has begun and taken the steps that the model has.
    func follows(_ model: Model) -> Bool {
      if taken.withLock({ $0 }) != model.taken.map({ max($0, 0) }) { return false }
      return model.waiting.allSatisfy { one in
        let (index, step) = (model.taken[one], plans[one].steps[model.taken[one]])
        let name = index == 0 && operation(one) != nil ? "p\(one)" : "p\(one).\(index)"
        if case .end(let other) = step {
          let isRecorded = operation(one) != nil || index > 0
          let waits = WaitWatch.waits.filter { wait in operation(other).map { wait.isWait(for: $0) } ?? false }
          let count = model.waiting.count { other in
            if case .end(let third) = plans[other].steps[model.taken[other]] {
              return isRecorded && third == self.third(step) && (operation(other) != nil || model.taken[other] > 0)
            }
            return false
          }
          return begun.withLock { $0.contains(name) } && waits.count >= count
        }
        if !step.claims.isEmpty {
          return step.claims.allSatisfy { domain.waiting(for: Self.keys[$0.key]).contains(name) }
        }
        guard let place = step.place, place < 5 else { return true }
        let all = place < 3 ? queues[place].operations : groups[place - 3].operations
        return all.contains { $0.displayName == name }
      }
    }

    private func third(_ step: Step) -> Int? { if case .end(let other) = step { other } else { nil } }

    var isRefused: Bool { hasRefusals }
    private var hasRefusals: Bool {
      refusals.withLock { !$0.isEmpty } || operations.withLock { $0.values.contains { $0.isCancelled } }
    }

    func release(_ model: Model) {
      for place in model.closedPlaces { suspend(place, false) }
      for key in model.closedKeys { domain.setLimit(nil, for: Self.keys[key]) }
      for gates in gates { for gate in gates { gate.open() } }
      released.open()
      for case let group as GroupOperation in operations.withLock({ Array($0.values) }) { group.staysOpen = false }
    }

    var isOver: Bool {
      plans.indices.allSatisfy { one in operation(one)?.isFinished ?? over.withLock { $0.contains(one) } }
    }

    func finish() {
      for (one, operation) in operations.withLock({ $0 }).sorted(by: { $0.key < $1.key }) where taken.withLock({ $0[one] }) == 0 {
        for case let error as OperationError in operation.errors { refuse(one, error) }
      }
      for group in groups { group.finish() }
    }

    var report: String {
      let lines = queues.map { "\($0.stallReport())" } + groups.map { "\($0.stallReport())" }
      return lines.joined(separator: "\n") + " taken \(taken.withLock { $0 })"
    }
  }

  private static func isTrue(within limit: Duration, _ condition: () -> Bool) async -> Bool {
    let end = ContinuousClock.now + limit
    while !condition() {
      if ContinuousClock.now > end { return false }
      try? await Task.sleep(for: .microseconds(200))
    }
    return true
  }

  @concurrent private static func failure(of first: Model, _ maker: Maker) async -> String? {
    var (model, maker, order) = (first, maker, [Int]())
    let world = World(model)
    while true {
      let movable = model.plans.indices.filter { one in
        !model.waiting.contains(one) && (model.taken[one] < 0 || model.taken[one] < model.plans[one].stepsAtFirst && !model.isStart(one))
      }
      let lateGroups = movable
      guard let one = lateGroups.randomElement(using: &maker.generator) else { break }
      order.append(one)
      let index = model.taken[one]
      model.settle(adding: one)
      world.drive(one, from: index)
      let follows = await isTrue(within: .seconds(2)) { world.follows(model) || world.isRefused }
      if !follows { await release(world, model); return "SETUP differs after \(order)\n\(show(model))\n\(world.report)" }
    }
    let isEarly = world.isRefused
    if maker.generator.one(of: 2) { try? await Task.sleep(for: .milliseconds(60)) }
    let before = model
    world.release(model)
    (model.closedPlaces, model.closedKeys) = ([], [])
    let outcomes = model.outcomes
    let isOver = await isTrue(within: .seconds(20)) { world.isOver }
    let report = isOver ? "" : world.report
    world.finish()
    let refusals = world.refusals.withLock { $0 }
    func text(_ what: String) -> String {
      "\(what): order \(order), early \(isEarly), \(outcomes)\n\(show(before))\n"
        + refusals.map { "  p\($0.one) \($0.error.code) \($0.error.message)" }.joined(separator: "\n") + report
    }
    if !isOver { return text("HANG") }
    if refusals.contains(where: { ![.waitCycle, .dependencyCycle].contains($0.error.code) }) { return text("CODE") }
    if !refusals.isEmpty, !outcomes.isStuck { return text("FALSE REFUSAL") }
    if refusals.isEmpty, !outcomes.ends { return text("JUDGE") }
    if refusals.count > 1, !isEarly, refusals.allSatisfy({ $0.error.code == .waitCycle }) {
      let isNeeded = refusals.indices.contains { index in
        var other = model
        for (number, refusal) in refusals.enumerated() where number != index { other.end(refusal.one) }
        return other.outcomes.isStuck
      }
      if !isNeeded { return text("TOO MANY") }
    }
    return nil
  }

  private static func release(_ world: World, _ model: Model) async {
    world.release(model)
    _ = await isTrue(within: .seconds(5)) { world.isOver }
    world.finish()
  }

  private static func show(_ model: Model) -> String {
    model.plans.enumerated().map { one, plan in
      "  p\(one) slots \(plan.slots.map(String.init) ?? "-") first \(plan.stepsAtFirst) taken \(model.taken[one]) \(plan.steps)"
    }.joined(separator: "\n") + "\n  waiting \(model.waiting) closed \(model.closedPlaces) \(model.closedKeys)"
  }

  @Test(arguments: SeededGenerator.seeds) func aWaitGivesWay_onlyIfNothingCanEnd(seed: UInt64) async {
    var maker = Maker(generator: SeededGenerator(seed: seed))
    let count = ProcessInfo.processInfo.environment["WORLDS"].flatMap(Int.init) ?? (isThorough ? 500 : 60)
    await withTaskGroup(of: String?.self) { group in
      for number in 0..<count {
        if number >= 8 { record(await group.next() ?? nil, seed) }
        let (model, next) = (maker.model(), Maker(generator: SeededGenerator(seed: maker.generator.next())))
        group.addTask { await Self.failure(of: model, next).map { "\(number): \($0)" } }
      }
      for await failure in group { record(failure, seed) }
    }
  }

  private func record(_ failure: String?, _ seed: UInt64) {
    if let failure {
      if failure.contains("SETUP"), ProcessInfo.processInfo.environment["WORLDS"] == nil { return }
      print("RANDOM_GRAPH_SEED=\(seed) \(failure)\n")
      Issue.record("RANDOM_GRAPH_SEED=\(seed)") }
  }
}
