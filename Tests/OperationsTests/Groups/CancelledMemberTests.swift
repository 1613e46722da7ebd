import Foundation
import Operations
import OperationsTestSupport
import Testing

/// Members that are cancelled before they start.
@Suite(.timeLimit(.minutes(5)))
struct CancelledMemberTests {
  /// What keeps a member from starting.
  enum Obstacle: CaseIterable, Sendable { case limit, suspension, dependency, key }

  enum Candidate: CaseIterable, Sendable { case operation, nestedGroup, cancelledBefore }

  private let queue = OperationQueue()
  private let domain = ExclusivityDomain()
  private let journal = Journal<String>()

  private func note(_ name: String) -> NoteOperation { NoteOperation(name, journal) }

  private func put(_ obstacle: Obstacle, before member: AsyncOperation, in group: GroupOperation, _ held: Operation) {
    switch obstacle {
    case .limit: group.maxConcurrentOperationCount = 1
    case .suspension: group.isSuspended = true
    case .dependency: held ==> member
    case .key: member.exclusive("a", in: domain)
    }
  }

  @Test(arguments: Obstacle.allCases, Candidate.allCases)
  func cancelledMember_finishesAtOnce(_ obstacle: Obstacle, _ candidate: Candidate) async {
    let (held, events) = (HeldOperation().exclusive("a", in: domain), Journal<String>())
    let group = GroupOperation([held])
    await queue.add(group, until: held.begun)
    let member = candidate == .nestedGroup ? GroupOperation([note("inner")]) : note("member")
    put(obstacle, before: member.named("member"), in: group, held)
    member.addObserver(
      OperationObserver(didCancel: { _ in events.write("cancel") }, didFinish: { _ in events.write("finish") })
    )
    let after = note("after")
    queue.addOperation(member ==> after)
    if candidate == .cancelledBefore { member.cancel() }
    group.addOperation(member)
    if candidate != .cancelledBefore {
      if obstacle == .key { await poll { domain.waiting(for: "a") == ["member"] } }
      #expect(!member.isFinished)
      member.cancel()
    }
    await member.finished()
    await after.finished()
    #expect(events.entries == ["cancel", "finish"] && member.errors.isEmpty)
    #expect(held.isExecuting && domain.waiting(for: "a").isEmpty)
    group.isSuspended = false
    await group.finished(opening: held.gate)
    #expect(journal.entries == ["after"] && group.isSuccessful)
  }

  @Test func cancelledBehindAMemberThatBlocks_finishesAtOnce() async {
    let (begun, end, waiting) = (Gate(), Gate(), note("waiting"))
    let blocking = ResultOperation {
      begun.open()
      end.pass()
    }
    let group = GroupOperation([blocking, waiting])
    group.maxConcurrentOperationCount = 1
    await queue.add(group, until: begun)
    waiting.cancel()
    await waiting.finished()
    #expect(blocking.isExecuting)
    await group.finished(opening: end)
    #expect(journal.entries.isEmpty && blocking.isSuccessful)
  }

  @Test func itTakesNoSlotFromTheOthers() async {
    let held = (0..<5).map { HeldOperation().named("\($0)") }
    let waiting = (0..<200).map { note("\($0)") }
    let group = GroupOperation([held[0], held[1]] + waiting)
    (group.maxConcurrentOperationCount, group.staysOpen) = (2, true)
    queue.addOperation(group)
    for operation in held[0..<2] { await operation.begun.opened() }
    await onThreads(4) { thread in
      for index in stride(from: thread, to: 200, by: 4) where index % 5 != 0 { waiting[index].cancel() }
    }
    for operation in waiting where operation.isCancelled { await operation.finished() }
    #expect(journal.entries.isEmpty)
    for operation in held[0..<2] { operation.gate.open() }
    for operation in waiting { await operation.finished() }
    // Two members execute at a time, so they may write in another order.
    #expect(journal.count == 40 && Set(journal.entries) == Set(stride(from: 0, to: 200, by: 5).map(String.init)))
    // Both slots are free, and there is no third one.
    let last = AsyncOperation()
    group.addOperations([held[2], held[3], held[4], last])
    for operation in held[2...3] { await operation.begun.opened() }
    last.cancel()
    await last.finished()
    #expect(!held[4].begun.isOpen)
    held[2].gate.open()
    await held[4].begun.opened()
    group.staysOpen = false
    for operation in held { operation.gate.open() }
    await group.finished()
  }

  /// Members are cancelled while others start and finish.
  @Test func theLimitHoldsWhileMembersAreCancelled() async {
    let (running, most) = (Locked(0), Locked(0))
    let members = (0..<2_000).map { _ in
      AsyncBlockOperation { operation in
        let count = running.withLock { count in
          count += 1
          return count
        }
        most.withLock { $0 = max($0, count) }
        DispatchQueue.global().async {
          running.withLock { $0 -= 1 }
          operation.finish()
        }
      }
    }
    let group = GroupOperation(members)
    group.maxConcurrentOperationCount = 3
    queue.addOperation(group)
    await onThreads(2) { thread in
      for index in stride(from: thread, to: members.count, by: 4) { members[index].cancel() }
    }
    await group.finished()
    #expect(members.allSatisfy { $0.isFinished } && most.withLock { (1...3).contains($0) })
  }
}
