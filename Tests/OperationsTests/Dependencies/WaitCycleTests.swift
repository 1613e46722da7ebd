import Foundation
import OperationsTestSupport
import Testing

@testable import Operations

/// Waits of every kind that can never end, in whatever order they begin. One of them gives way, and the others end.
@Suite(.timeLimit(.minutes(3)))
struct WaitCycleTests {
  /// Something that waits, and throws what it receives.
  typealias Participant = @Sendable () async throws -> Void

  /// What the participants of a cycle share.
  final class World: Sendable {
    let domain = ExclusivityDomain()
    let free = OperationQueue()
    let pair = OperationQueue.limited(to: 2)
    let single = OperationQueue.limited(to: 1)
    let group = GroupOperation("open", maxConcurrentOperationCount: 1).started()
    let groupOfTwo = GroupOperation("open pair", maxConcurrentOperationCount: 2).started()
    private let bodies = Locked(0)
    /// Opened when as many bodies have begun as the cycle needs, so that none has ended before.
    private let all = Gate()

    func begin(of count: Int) async {
      let isLast = bodies.withLock { bodies in
        bodies += 1
        return bodies == count
      }
      if isLast { all.open() }
      await all.opened()
    }

    func holding(_ claims: ExclusivityClaim, _ body: @escaping Participant) -> Participant {
      { try await withKeys(claims, in: self.domain) { try await body() } }
    }

    func needing(_ key: ExclusivityKey) -> AsyncOperation { AsyncOperation().exclusive(key, in: domain) }
  }

  struct Cycle: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let participants: @Sendable (World) -> [Participant]

    init(_ name: String, _ participants: @escaping @Sendable (World) -> [Participant]) {
      (testDescription, self.participants) = (name, participants)
    }
  }

  @Test(arguments: keys + slots + starts + rooms, [0, 5, 60])
  func oneOfACycle_givesWay(_ cycle: Cycle, milliseconds gap: Int) async {
    for isReversed in [false, true] {
      let world = World()
      let participants = cycle.participants(world)
      let errors = await withTaskGroup(of: (any Error)?.self) { group in
        for participant in isReversed ? participants.reversed() : participants {
          group.addTask {
            do { try await participant() } catch { return error }
            return nil
          }
          // The waits begin this far apart.
          if gap > 0 { try? await Task.sleep(for: .milliseconds(gap)) }
        }
        return await group.reduce(into: []) { if let error = $1 { $0.append(error) } }
      }
      let all = errors.flatMap { error in (error as? AggregateError)?.failures.map(\.error) ?? [error] }
      let messages = Set(all.compactMap { $0 as? OperationError }.map { "\($0.code) \($0.message)" })
      #expect(messages.count == 1, "\(all)")
      let codes = all.compactMap { ($0 as? OperationError)?.code }
      #expect(codes.count == all.count && codes.allSatisfy { [.waitCycle, .dependencyCycle].contains($0) }, "\(all)")
      for group in [world.group, world.groupOfTwo] { group.finish() }
      for queue in [world.free, world.pair, world.single] { await queue.finished() }
      await poll { world.domain.isUnused }
    }
  }

  // MARK: Keys

  private static let keys = [
    Cycle("a holder awaits what needs the key of a holder that waits for keys") { world in
      let needsB = world.needing("b")
      return [
        world.holding(.exclusive("a")) {
          await world.begin(of: 2)
          world.free.addOperation(needsB)
          try await needsB.completed()
        },
        world.holding(.exclusive("b")) {
          await world.begin(of: 2)
          try await world.holding(.exclusive("a")) {}()
        },
      ]
    },
    Cycle("two holders of a limit await what needs it") { world in
      (0..<2).map { _ in
        world.holding(.limited("api", to: 2)) {
          await world.begin(of: 2)
          // Not as a part of the holder, whose key it could use.
          let next = AsyncOperation().limited("api", to: 2, in: world.domain)
          world.free.addOperation(next)
          try await next.completed()
        }
      }
    },
    Cycle("what holders await is added later") { world in
      let (needsA, needsB) = (world.needing("a"), world.needing("b"))
      return [
        world.holding(.exclusive("a")) {
          await world.begin(of: 2)
          try await needsB.completed()
        },
        world.holding(.exclusive("b")) {
          await world.begin(of: 2)
          try await needsA.completed()
        },
        {
          await poll { world.domain.holders(of: "a") != [] && world.domain.holders(of: "b") != [] }
          world.free.addOperations([needsA, needsB])
        },
      ]
    },
    Cycle("a holder awaits the end of 300 dependencies") { world in
      let last = world.needing("a")
      return [
        world.holding(.exclusive("a")) {
          let chain = chain([last] + (0..<300).map { _ in AsyncOperation() })
          world.free.addOperations(chain)
          try await (chain.last as? AsyncOperation)?.completed()
        }
      ]
    },
    Cycle("a holder awaits a group of 2,000 members") { world in
      [
        world.holding(.exclusive("a")) {
          let group = GroupOperation((0..<2_000).map { _ in AsyncOperation() } + [world.needing("a")])
          world.free.addOperation(group)
          try await group.completed()
        }
      ]
    },
    Cycle("slots that hold keys") { world in
      let keys: [ExclusivityKey] = ["a", "b"]
      return keys.indices.map { index in
        {
          try await world.free.withSlot(holding: .exclusive(keys[index]), in: world.domain) {
            await world.begin(of: 2)
            try await world.free.withSlot(holding: .exclusive(keys[1 - index]), in: world.domain) {}
          }
        }
      }
    },
    Cycle("results and the first of what needs a key of a holder") { world in
      let needsA = ResultOperation { 1 }.exclusive("a", in: world.domain)
      let needsB = ResultOperation { 1 }.exclusive("b", in: world.domain)
      return [
        world.holding(.exclusive("a")) {
          await world.begin(of: 2)
          world.free.addOperation(needsB)
          for await (_, result) in world.free.results(of: [needsB]) { _ = try result.get() }
        },
        world.holding(.exclusive("b")) {
          await world.begin(of: 2)
          world.free.addOperation(needsA)
          _ = try await world.free.first(of: [needsA])
        },
      ]
    },
    Cycle("what a holder awaits stands behind one that waits for the holder") { world in
      let (needsB, isBehind) = (world.needing("b"), Gate())
      return [
        world.holding(.exclusive("a")) {
          await isBehind.opened()
          try await needsB.completed()
        },
        {
          await poll { world.domain.holders(of: "a").count == 1 }
          try await withKeys(.exclusive("a", "b"), in: world.domain) {}
        },
        {
          await poll { world.domain.waiting(for: "b").count == 1 }
          world.free.addOperation(needsB)
          isBehind.open()
        },
      ]
    },
    Cycle("shared work needs a key of its caller") { world in
      [
        world.holding(.exclusive("a")) {
          try await world.free.run(sharing: "work", in: world.domain) { world.needing("a") }
        }
      ]
    },
  ]

  // MARK: Slots

  private static let slots = [
    Cycle("two operations that fill a queue run others in it") { world in
      (0..<2).map { _ in
        {
          try await world.pair.run(
            TaskOperation {
              await world.begin(of: 2)
              try await world.pair.run(AsyncOperation())
            }
          )
        }
      }
    },
    Cycle("two slots of a queue ask for another one") { world in
      (0..<2).map { _ in
        {
          try await world.pair.withSlot {
            await world.begin(of: 2)
            try await world.pair.withSlot {}
          }
        }
      }
    },
    Cycle("two slots of a group ask for another one") { world in
      (0..<2).map { _ in
        {
          try await world.groupOfTwo.withSlot {
            await world.begin(of: 2)
            try await world.groupOfTwo.withSlot {}
          }
        }
      }
    },
    Cycle("a slot of a queue and a key") { world in
      [
        {
          try await world.single.withSlot {
            await world.begin(of: 2)
            try await world.holding(.exclusive("a")) {}()
          }
        },
        world.holding(.exclusive("a")) {
          await world.begin(of: 2)
          try await world.single.withSlot {}
        },
      ]
    },
    Cycle("a slot of a group and a key") { world in
      [
        {
          try await world.group.withSlot {
            await world.begin(of: 2)
            try await world.holding(.exclusive("a")) {}()
          }
        },
        world.holding(.exclusive("a")) {
          await world.begin(of: 2)
          try await world.group.withSlot {}
        },
      ]
    },
    Cycle("operations that await each other in slots") { world in
      let others = Locked<[TaskOperation<Void>]>([])
      let operations = (0..<2).map { index in
        TaskOperation<Void> {
          await world.begin(of: 2)
          try await world.free.withSlot { try await others.withLock { $0[1 - index] }.value }
        }
      }
      others.withLock { $0 = operations }
      return operations.map { operation in { try await world.pair.run(operation) } }
    },
    Cycle("shared runs in a queue that their callers fill") { world in
      (0..<2).map { index in
        {
          try await world.pair.run(
            TaskOperation {
              await world.begin(of: 2)
              try await world.pair.run(sharing: "work \(index)", in: world.domain) { AsyncOperation() }
            }
          )
        }
      }
    },
    Cycle("an event of a scheduler in whose queue the caller runs") { _ in
      let scheduler = SerialScheduler(name: "notes")
      return [{ try await scheduler.queue.run(TaskOperation { try await scheduler.run {} }) }]
    },
    Cycle("the queue of a scheduler and a key") { world in
      let scheduler = SerialScheduler(name: "notes")
      return [
        {
          try await scheduler.queue.run(
            TaskOperation {
              await world.begin(of: 2)
              try await world.holding(.exclusive("a")) {}()
            }
          )
        },
        world.holding(.exclusive("a")) {
          await world.begin(of: 2)
          try await scheduler.run {}
        },
      ]
    },
  ]

  // MARK: Starts

  private static let starts = [
    Cycle("a group and the dependency of its member in a queue of one slot") { world in
      let (last, member) = (AsyncOperation().named("last"), AsyncOperation().named("member"))
      last ==> member
      let group = GroupOperation([member])
      return [
        {
          world.single.addOperation(group)
          try await group.completed()
        },
        {
          await poll { group.isExecuting }
          try await world.single.run(last)
        },
      ]
    },
    Cycle("a group and the dependency of its member under one key") { world in
      let (last, member) = (world.needing("a"), AsyncOperation())
      last ==> member
      let group = GroupOperation([member]).exclusive("a", in: world.domain)
      return [
        {
          world.free.addOperation(group)
          try await group.completed()
        },
        {
          await poll { group.isExecuting }
          world.free.addOperation(last)
          try await last.completed()
        },
      ]
    },
    Cycle("a group that depends on its own member") { world in
      let member = AsyncOperation()
      let group = GroupOperation([member])
      member ==> group
      return [
        {
          world.free.addOperation(group)
          await group.finished()
          if let error = (group.errors + member.errors).first { throw error }
        }
      ]
    },
    Cycle("operations of a queue that depend on each other") { world in
      let pair = (0..<2).map { _ in AsyncOperation() }
      chain(pair + [pair[0]])
      return [
        {
          world.free.addOperations(pair)
          for operation in pair { await operation.finished() }
          if let error = pair.flatMap(\.errors).first { throw error }
        }
      ]
    },
    Cycle("a repetition in a full group and a key") { world in
      let begun = Gate()
      let repetition = RepeatOperation { iteration in
        begun.open()
        return iteration == 1 ? TaskOperation { try await world.holding(.exclusive("a")) {}() } : nil
      }
      return [
        world.holding(.exclusive("a")) {
          world.group.addOperation(repetition)
          await begun.opened()
          try await world.group.withSlot {}
        },
        {
          await repetition.finished()
          if let error = repetition.errors.first { throw error }
        },
      ]
    },
  ]

  // MARK: Rooms

  private static let rooms = [
    Cycle("a member that adds to its own group below one") { world in
      let added = AsyncOperation()
      world.group.addOperation(TaskOperation { await world.group.addOperation(added, whenBelow: 1) })
      return [
        {
          await added.finished()
          if let error = added.errors.first { throw error }
        }
      ]
    },
    Cycle("members that wait for room in each other's group") { world in
      let groups = [world.group, world.groupOfTwo]
      let added = [AsyncOperation(), AsyncOperation()]
      return [0, 1].map { index in
        {
          let member = TaskOperation {
            await world.begin(of: 2)
            await groups[1 - index].addOperation(added[index], whenBelow: 1)
          }
          groups[index].addOperation(member)
          await added[index].finished()
          if let error = added[index].errors.first { throw error }
        }
      }
    },
  ]

  // MARK: Not refused

  @Test func aLimitThatIsSet_refusesNone() async throws {
    let (domain, queue) = (ExclusivityDomain(), OperationQueue())
    domain.setLimit(0, for: "b")
    let needsB = AsyncOperation().shared("b", in: domain)
    let task = Task { try await withKeys(.exclusive("a"), in: domain) { try await queue.run(needsB) } }
    await lookForCycles { $0.isWait(for: needsB) }
    domain.setLimit(nil, for: "b")
    try await task.value
  }

  @Test func anyClaimInsideAnExclusiveHolder_isGranted() async throws {
    let domain = ExclusivityDomain()
    let member = AsyncOperation().limited("m", to: 8, weight: 3, in: domain)
    try await OperationQueue().run(GroupOperation([member]).exclusive("m", in: domain))
    try await withKeys(.exclusive("m"), in: domain) {
      try await withKeys(.limited("m", to: 3, weight: 2), in: domain) {}
    }
  }
}
