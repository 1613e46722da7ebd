import Foundation
import Operations
import OperationsTestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct BoundedAddingTests: NotingSuite {
  private let queue = OperationQueue()
  let journal = Journal<String>()

  /// Adds operations in the order of their calls. Each call is waiting when this returns.
  private func add(_ members: [Operation], to group: GroupOperation, whenBelow count: Int) -> [Task<Void, any Error>] {
    members.map { member in immediately { await group.addOperation(member, whenBelow: count) } }
  }

  private func begun(staysOpen: Bool = false) async -> (group: GroupOperation, member: HeldOperation) {
    let member = HeldOperation()
    let group = GroupOperation([member])
    group.staysOpen = staysOpen
    await queue.add(group, until: member.begun)
    return (group, member)
  }

  @Test(arguments: [[1], [5], Array(1...50)])
  func manyTasksNeverExceedTheBound(bounds: [Int]) async {
    let (group, most) = (GroupOperation(), Locked(0))
    group.staysOpen = true
    await queue.begin(group)
    await withTaskGroup { tasks in
      for task in 0..<50 {
        tasks.addTask { [journal] in
          for _ in 0..<20 {
            let member = AsyncBlockOperation { operation in
              journal.write("")
              DispatchQueue.global().async { operation.finish() }
            }
            await group.addOperation(member, whenBelow: bounds[task % bounds.count])
            let count = group.operations.count
            most.withLock { $0 = max($0, count) }
          }
        }
      }
    }
    await group.ended()
    #expect(journal.count == 1_000 && most.withLock { $0 <= bounds.max() ?? 0 })
  }

  @Test func oneForWhichThereIsNoRoom_remainsFree() async throws {
    let (group, held) = await begun(staysOpen: true)
    let (member, other) = (note("member"), note("other"))
    #expect(!group.addOperation(other, ifBelow: 1) && !group.addOperation(other, ifBelow: 0))
    #expect(group.addOperation(member, ifBelow: 2))
    await member.finished()
    let waiting = add([note("waiting")], to: group, whenBelow: 1)
    held.gate.open()
    for task in waiting { try await task.value }
    try await queue.run(other)
    await group.ended()
    #expect(journal.entries.sorted() == ["member", "other", "waiting"])
    let late = note("late")
    #expect(!group.addOperation(late, ifBelow: 0) && late.state == .pending)
    #expect(group.addOperation(late, ifBelow: 1) && late.errors.contains { OperationError.Code.shutDown ~= $0 })
  }

  @Test func manyThreadsThatAddIfThereIsRoom_neverExceedTheBound() async {
    let (group, added) = (GroupOperation(), Locked(0))
    await onThreads(4) { _ in
      for _ in 0..<1_000 where group.addOperation(AsyncOperation(), ifBelow: 100) { added.withLock { $0 += 1 } }
    }
    #expect(group.operations.count == 100 && added.withLock { $0 } == 100)
  }

  @Test func tasksWithTheSameBoundProceedInTheOrderOfTheirCalls() async throws {
    let (group, held) = await begun(staysOpen: true)
    let high = note("high")
    let adding = add((0..<20).map { note("\($0)") }, to: group, whenBelow: 1)
    #expect(group.operations == [held])
    await group.addOperation(high, whenBelow: 2)
    await high.finished()
    #expect(journal.entries == ["high"])
    held.gate.open()
    for task in adding { try await task.value }
    await group.ended()
    #expect(journal.entries == ["high"] + (0..<20).map { "\($0)" })
  }

  @Test(arguments: [true, false])
  func aCancelledTask_addsACancelledOperationAtOnce(hasRoom: Bool) async throws {
    let (group, held) = await begun()
    let (member, next, begin) = (note("member"), note("next"), Gate())
    let adding = immediately {
      if hasRoom { await withCheckedContinuation { continuation in begin.whenOpen { continuation.resume() } } }
      await group.addOperation(member, whenBelow: hasRoom ? 10 : 1)
    }
    let others = add([next], to: group, whenBelow: 1)
    adding.cancel()
    try await adding.value(opening: begin)
    await member.finished()
    #expect(member.isCancelled && member.errors.isEmpty && held.isExecuting)
    group.staysOpen = true
    held.gate.open()
    for task in others { try await task.value }
    await group.ended()
    #expect(journal.entries == ["next"])
  }

  @Test func aGroupThatTimesOutMeanwhile_finishesTheOperations() async throws {
    let (held, clock) = (HeldOperation(), ManualClock())
    let group = GroupOperation([held])
    (group.clock, group.timeout) = (clock, .seconds(1))
    await queue.add(group, until: held.begun)
    let members = (0..<5).map { note("\($0)") }
    let waiting = immediately { await group.waitForRoom(below: 1) }
    let adding = add(members, to: group, whenBelow: 1)
    await clock.advance(by: .seconds(1), sleepers: 1)
    for task in adding + [waiting] { try await task.value }
    for member in members { await member.finished() }
    #expect(members.allSatisfy { $0.isCancelled && $0.errors.isEmpty } && journal.entries.isEmpty && held.isExecuting)
    // There is no room, but the group has finished.
    let late = note("late")
    await group.addOperation(late, whenBelow: 1)
    await group.waitForRoom(below: 1)
    #expect(late.isFinished && held.isExecuting)
    held.gate.open()
  }

  @Test func aGroupThatFinishesMeanwhile_losesNoOperation() async throws {
    for _ in 0..<500 {
      let (group, held) = await begun()
      let members = (0..<5).map { _ in AsyncOperation() }
      let adding = add(members, to: group, whenBelow: 1)
      held.gate.open()
      for task in adding { try await task.value }
      for member in members {
        await member.finished()
        #expect(member.isSuccessful || member.errors.contains { OperationError.Code.shutDown ~= $0 })
      }
      await group.finished()
    }
  }
}
