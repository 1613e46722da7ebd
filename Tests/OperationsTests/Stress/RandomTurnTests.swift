import Foundation
import OperationsTestSupport
import Soak
import Testing

@testable import Operations

/// Random members of groups, with limits, priorities, flows and pauses, under keys of every mode. What starts after each
/// step is compared with a list scheduler that always starts the first waiter that fits.
///
/// A failure contains the steps, and `RANDOM_GRAPH_SEED=17 swift test --filter RandomTurn` replays a seed.
@Suite(.timeLimit(.minutes(5)))
struct RandomTurnTests {
  // MARK: The list scheduler

  /// The rule: the first waiter that fits starts next, by priority and then by arrival. Of the waiters without keys of a
  /// group, the next is of the flow with the fewest executing members, and of those of the flow served longest ago.
  private struct ListScheduler {
    enum Phase: Equatable {
      case waiting, executing, over
      case pausing(until: Duration)
    }

    struct Job {
      let group: Int
      /// 0 is no flow.
      let flow: Int
      let claims: [KeyClaim]
      var attemptsLeft: Int
      var priority: Operation.QueuePriority
      var phase = Phase.waiting
    }

    var slots: [Int]
    var suspendedGroups: Set<Int> = []
    /// In order of arrival.
    var jobs: [Job] = []
    /// The number of the latest start, by group and flow. A member without a flow has started in every group.
    private var served: [[Int: Int]]
    private var startCount = 0

    init(slots: [Int]) {
      self.slots = slots
      served = slots.map { _ in [0: 0] }
    }

    mutating func startAll() -> [Int] {
      var started: [Int] = []
      while let job = nextToStart {
        jobs[job].phase = .executing
        started.append(job)
        startCount += 1
        served[jobs[job].group][jobs[job].flow] = startCount
      }
      return started
    }

    private var nextToStart: Int? {
      var claimedKeys: Set<ExclusivityKey> = []
      let waiters = indices { $0 == .waiting }.sorted {
        (jobs[$1].priority.rawValue, $0) < (jobs[$0].priority.rawValue, $1)
      }
      // Waiters of a full or suspended group are stepped over.
      for waiter in waiters where hasSlot(jobs[waiter].group) && isNextOfFlows(waiter, among: waiters) {
        let claims = jobs[waiter].claims
        if claims.allSatisfy({ !claimedKeys.contains($0.key) && admits($0) }) { return waiter }
        claimedKeys.formUnion(claims.map(\.key))
      }
      return nil
    }

    private func isNextOfFlows(_ waiter: Int, among waiters: [Int]) -> Bool {
      let (group, flows) = (jobs[waiter].group, waiters.filter { jobs[$0].claims.isEmpty })
      func turn(_ waiter: Int) -> [Int] {
        let executing = indices { $0 == .executing }.filter { jobs[$0].group == group }
        let beside = executing.count { jobs[$0].flow == jobs[waiter].flow }
        return [-jobs[waiter].priority.rawValue, beside, served[group][jobs[waiter].flow] ?? -1, waiter]
      }
      let next = flows.filter { jobs[$0].group == group }.min { turn($0).lexicographicallyPrecedes(turn($1)) }
      return waiter == next || !jobs[waiter].claims.isEmpty
    }

    private func hasSlot(_ group: Int) -> Bool {
      !suspendedGroups.contains(group) && indices { $0 == .executing }.count { jobs[$0].group == group } < slots[group]
    }

    private func admits(_ claim: KeyClaim) -> Bool {
      let holders = indices { $0 == .executing }.flatMap { jobs[$0].claims }.filter { $0.key == claim.key } + [claim]
      return holders.map(\.weight).reduce(0, +) <= holders.map(\.limit).min() ?? 0
    }

    func indices(where isIncluded: (Phase) -> Bool) -> [Int] { jobs.indices.filter { isIncluded(jobs[$0].phase) } }

    /// The jobs that back off, and when each of them returns.
    var pauses: [(job: Int, end: Duration)] {
      jobs.indices.compactMap { job in if case .pausing(let end) = jobs[job].phase { (job, end) } else { nil } }
    }
  }

  // MARK: Members

  /// A member whose attempts the test finishes.
  private final class Member: Sendable {
    private let attempt = Locked<AsyncOperation?>(nil)
    private let delay = Locked(Duration.zero)

    func operation(attempts: Int, _ didStart: @escaping @Sendable () -> Void) -> AsyncOperation {
      let begin: @Sendable (AsyncOperation) -> Void = { [self] in
        attempt.withLock { [attempt = $0] in $0 = attempt }
        didStart()
      }
      if attempts == 1 { return AsyncBlockOperation { begin($0) } }
      let decide: @Sendable (Result<Void, any Error>, Int) -> RetryDecision = { [self] result, _ in
        if case .success = result { .stop } else { .retry(after: delay.withLock { $0 }) }
      }
      return RetryOperation(attempts: attempts, retryWhen: decide) { _ in AsyncBlockOperation { begin($0) } }
    }

    func succeed() { attempt.withLock { $0 }?.finish() }

    func fail(pausingFor delay: Duration) {
      self.delay.withLock { $0 = delay }
      attempt.withLock { $0 }?.finish(with: TestError("again"))
    }
  }

  /// Groups and the model of them, which take the same steps.
  private final class World {
    private var generator: SeededGenerator
    private var model: ListScheduler
    private let groups: [GroupOperation]
    private var members: [(member: Member, operation: AsyncOperation)] = []
    private let keys: [ExclusivityKey]
    private let hasFlows: Bool
    private let domain = ExclusivityDomain()
    private let clock = ManualClock()
    private let starts = Journal<Int>()
    /// The number of starts until now, by the model.
    private var startCount = 0
    private var steps: [String] = []

    init(seed: UInt64) async {
      var generator = SeededGenerator(seed: seed)
      let slots = (0..<generator.number(1...3)).map { _ in generator.number(1...4) }
      keys = Array((["a", "b", "c"] as [ExclusivityKey]).prefix(generator.number(1...3)))
      hasFlows = Bool.random(using: &generator)
      self.generator = generator
      model = ListScheduler(slots: slots)
      groups = slots.enumerated().map { GroupOperation("\($0)", maxConcurrentOperationCount: $1) }
      for group in groups {
        group.clock = clock
        let first = AsyncOperation()
        group.started().addOperation(first)
        await first.finished()
        await group.waitForRoom(below: 1)
      }
      steps.append("slots \(slots)")
    }

    func close() {
      for group in groups { group.cancel() }
      for (member, _) in members { member.succeed() }
    }

    private func one(of count: Int) -> Bool { generator.one(of: count) }

    private func oneOf<Value>(_ values: some Collection<Value>) -> Value? { values.randomElement(using: &generator) }

    private func priority() -> Operation.QueuePriority { one(of: 3) ? oneOf([.low, .high, .veryHigh])! : .normal }

    private func claims() -> [KeyClaim] {
      keys.shuffled(using: &generator).prefix(one(of: hasFlows ? 2 : 8) ? 0 : one(of: 3) ? 2 : 1).map { key in
        let limit = oneOf([1, 2, 3, 4, .max])!
        let weight = limit == .max ? 1 : generator.number(1...limit)
        return KeyClaim(domain: domain, key: key, limit: limit, weight: weight)
      }
    }

    // MARK: Steps

    func takeStep(adds: Bool) async throws {
      let executing = model.indices { $0 == .executing }
      let pending = model.indices { $0 != .executing && $0 != .over }
      let pauses = model.pauses
      let choice = generator.number(0...19)
      switch choice {
      case 0..<9 where adds: add()
      case 9..<11 where !pauses.isEmpty: advance()
      case 11 where adds: toggle(Int.random(in: groups.indices, using: &generator))
      case 12 where !pending.isEmpty: await cancel(oneOf(pending)!)
      case 13 where !pending.isEmpty: changePriority(of: oneOf(pending)!)
      default:
        if let job = oneOf(executing) {
          await finish(job)
        } else if !pauses.isEmpty {
          advance()
        } else if let group = oneOf(model.suspendedGroups.sorted()) {
          toggle(group)
        } else if adds {
          add()
        }
      }
      try await compare()
    }

    var isDone: Bool { model.jobs.allSatisfy { $0.phase == .over } }

    private func compare() async throws {
      let started = model.startAll()
      startCount += started.count
      steps.append("  starts \(started)")
      // The time limit of the test ends this wait if one is missing, and the failure names the step.
      await starts.reaches(startCount)
      // The starts of one step may be on several threads.
      let actual = starts.entries.dropFirst(startCount - started.count)
      try #require(actual.sorted() == started.sorted(), "\(steps.joined(separator: "\n"))")
    }

    private func add() {
      let group = Int.random(in: groups.indices, using: &generator)
      // Members of another group could pass those that arrive together.
      let count = groups.count == 1 && one(of: 4) ? generator.number(2...4) : 1
      groups[group].addOperations((0..<count).map { _ in makeMember(of: group) })
    }

    private func makeMember(of group: Int) -> AsyncOperation {
      let (job, member) = (members.count, Member())
      let (claims, attempts, priority) = (claims(), one(of: 3) ? 2 : 1, priority())
      let flow = hasFlows ? generator.number(0...2) : 0
      let operation = member.operation(attempts: attempts) { [starts] in starts.write(job) }.named("\(job)")
      operation.addClaims(claims)
      operation.queuePriority = priority
      if flow > 0 { operation.flow = "\(flow)" }
      let texts = claims.map { "\($0.key) \($0.weight)/\($0.limit == .max ? "∞" : "\($0.limit)")" }
      steps.append("add \(job) to \(group): \(texts), priority \(priority.rawValue), flow \(flow), tries \(attempts)")
      model.jobs.append(
        ListScheduler.Job(group: group, flow: flow, claims: claims, attemptsLeft: attempts - 1, priority: priority)
      )
      members.append((member, operation))
      return operation
    }

    private func finish(_ job: Int) async {
      let (member, operation) = members[job]
      if model.jobs[job].attemptsLeft == 0 || one(of: 4) {
        steps.append("finish \(job)")
        model.jobs[job].phase = .over
        member.succeed()
        return await end(of: operation)
      }
      // No two pauses end at the same time, so that a step is the return of one member.
      var end = clock.now.offset + .seconds(generator.number(1...5))
      while model.pauses.contains(where: { $0.end == end }) { end += .nanoseconds(1) }
      steps.append("pause \(job) until \(end)")
      model.jobs[job].attemptsLeft -= 1
      model.jobs[job].phase = .pausing(until: end)
      member.fail(pausingFor: end - clock.now.offset)
      await clock.waitForSleepers(model.pauses.count)
    }

    /// Waits until a member has left its group, and has therefore given its slot back.
    private func end(of operation: AsyncOperation) async {
      await operation.finished()
      await poll { [groups] in !groups.contains { $0.operations.contains { $0 === operation } } }
    }

    private func advance() {
      guard let (job, end) = model.pauses.min(by: { $0.end < $1.end }) else { return }
      steps.append("advance to the return of \(job)")
      model.jobs[job].phase = .waiting
      clock.advance(by: end - clock.now.offset)
    }

    private func toggle(_ group: Int) {
      let isSuspended = model.suspendedGroups.remove(group) == nil
      if isSuspended { model.suspendedGroups.insert(group) }
      steps.append("\(isSuspended ? "suspend" : "resume") group \(group)")
      groups[group].isSuspended = isSuspended
    }

    private func cancel(_ job: Int) async {
      steps.append("cancel \(job)")
      model.jobs[job].phase = .over
      members[job].operation.cancel()
      await end(of: members[job].operation)
    }

    private func changePriority(of job: Int) {
      let priority = priority()
      steps.append("priority of \(job) is \(priority.rawValue)")
      model.jobs[job].priority = priority
      members[job].operation.queuePriority = priority
    }
  }

  @Test(arguments: SeededGenerator.seeds)
  func membersOfGroups_startAsInAList(seed: UInt64) async throws {
    for round in 0..<(isThorough ? 200 : 12) as Range<UInt64> {
      let world = await World(seed: seed &* 1_000 &+ round)
      defer { world.close() }
      for _ in 0..<80 { try await world.takeStep(adds: true) }
      while !world.isDone { try await world.takeStep(adds: false) }
    }
  }
}
