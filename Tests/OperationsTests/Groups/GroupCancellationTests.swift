import Foundation
import OperationsTestSupport
import Soak
import Testing

@testable import Operations

@Suite(.timeLimit(.minutes(5)))
struct GroupCancellationTests {
  private let queue = OperationQueue()
  private let journal = Journal<String>()

  @Test func theFlagIsItsOwnFirstThenItsMembersThenTheirs() async {
    let leaf = HeldOperation().named("leaf")
    let inner = GroupOperation("inner") { leaf }
    let outer = GroupOperation("outer") { inner }
    for operation in [leaf, inner, outer] {
      operation.addObserver(
        OperationObserver(didCancel: { _ in
          journal.write([outer, inner, leaf].map { $0.isCancelled ? "1" : "0" }.joined())
        })
      )
    }
    queue.addOperation(outer)
    await leaf.begun.opened()
    outer.cancel()
    // Each hears of it before those further in are cancelled.
    #expect(journal.entries == ["100", "110", "111"])
    #expect(!outer.isFinished)
    leaf.gate.open()
    await outer.finished()
    #expect(inner.isFinished && leaf.isFinished)
  }

  /// Groups around a leaf, the innermost first.
  private func nested(_ depth: Int) -> [GroupOperation] {
    var groups = [GroupOperation([AsyncOperation(), BlockOperation {}])]
    while groups.count < depth { groups.append(GroupOperation([groups[groups.count - 1], AsyncOperation()])) }
    return groups
  }

  @Test(arguments: [1, 15, 16, 17, 100, 20_000])
  func nestedGroupsAreCancelledWhenCancelReturns(depth: Int) async throws {
    try await onSmallStack {
      let groups = nested(depth)
      let members = groups.flatMap(\.operations)
      let levels = Journal<Int>()
      for (level, group) in groups.enumerated() {
        group.addObserver(OperationObserver(didCancel: { _ in levels.write(level) }))
      }
      groups[depth - 1].cancel()
      #expect(members.allSatisfy { $0.isCancelled })
      #expect(levels.entries == Array((0..<depth).reversed()), "each group before the ones inside it")
    }
  }

  @Test(arguments: [1, 15, 16, 17, 100])
  func anObserverDeepInsideCancelsBeforeItGoesOn(depth: Int) async {
    let groups = nested(depth)
    let other = nested(depth)
    let members = other.flatMap(\.operations)
    let seen = Gate()
    groups[0].addObserver(
      OperationObserver(didCancel: { _ in
        other[depth - 1].cancel()
        if members.allSatisfy(\.isCancelled) { seen.open() }
      })
    )
    groups[depth - 1].cancel()
    #expect(seen.isOpen)
    await queue.run(settling: [groups[depth - 1], other[depth - 1]])
  }

  @Test func everyMemberFinishesOfAGroupThatIsCancelledBeforeItsStart() async {
    let (a, b) = (NoteOperation("a", journal), NoteOperation("b", journal))
    let nested = NoteOperation("nested", journal)
    let group = GroupOperation([a ==> b, a, GroupOperation([nested])])
    let after = NoteOperation("after", journal)
    b ==> after
    group.addObserver(OperationObserver(didStart: { _ in journal.write("start") }))
    group.cancel()
    #expect(a.isCancelled && nested.isCancelled && !a.isFinished)
    queue.addOperation(group)
    queue.addOperation(after)
    await after.finished()
    await group.finished()
    #expect(journal.entries == ["after"])
    #expect([a, b, nested].filter { $0.isFinished && $0.isCancelled }.count == 3)
  }

  @Test func aSuspendedGroupFinishesWhenItIsCancelled() async {
    let group = GroupOperation([NoteOperation("a", journal)])
    group.isSuspended = true
    group.maxConcurrentOperationCount = 0
    queue.addOperation(group)
    group.cancel()
    await group.finished()
    let empty = GroupOperation()
    empty.isSuspended = true
    queue.addOperation(empty)
    empty.cancel()
    await empty.finished()
    #expect(journal.entries.isEmpty)
  }

  @Test func aCancelledMemberIsFinishedOnceThoughItsDependencyFinishesLater() async {
    for _ in 0..<100 {
      let held = HeldOperation()
      let waiting = NoteOperation("waiting", journal)
      let group = GroupOperation { held ==> waiting }
      let count = Journal<Void>()
      waiting.addObserver(OperationObserver(didFinish: { _ in count.write(()) }))
      queue.addOperation(group)
      await held.begun.opened()
      waiting.cancel()
      await waiting.finished()
      #expect(!group.isFinished)
      held.gate.open()
      await group.finished()
      #expect(count.count == 1)
    }
    #expect(journal.entries.isEmpty)
  }

  @Test func cancellingWhileMembersAreAdded() async {
    for _ in 0..<100 {
      let held = HeldOperation()
      let group = GroupOperation([held])
      queue.addOperation(group)
      await held.begun.opened()
      let added = Locked([Operation]())
      await onThreads(3) { thread in
        if thread == 0 {
          group.cancel()
          held.gate.open()
        } else {
          for _ in 0..<20 {
            let member = AsyncOperation()
            added.withLock { $0.append(member) }
            group.addOperation(member)
          }
        }
      }
      await group.finished()
      for member in added.withLock({ $0 }) { await member.finished() }
    }
  }

  @Test func noMemberExecutesThoughTheGroupStartsWhileItIsBeingCancelled() async {
    let (first, second) = (NoteOperation("first", journal), NoteOperation("second", journal))
    let group = GroupOperation([first, second])
    let secondHasFinished = DispatchSemaphore(value: 0)
    // It holds up the cancelling, which has not come to the second member yet.
    first.addObserver(OperationObserver(didCancel: { _ in secondHasFinished.wait() }))
    second.addObserver(OperationObserver(didFinish: { _ in secondHasFinished.signal() }))
    let began = Gate()
    DispatchQueue.global().async {
      began.open()
      group.cancel()
    }
    await began.opened()
    while !group.isCancelled { await Task.yield() }
    queue.addOperation(group)
    await group.finished()
    #expect(journal.entries.isEmpty && second.isCancelled)
  }

  @Test(arguments: [false, true])
  func aPlainNewcomerThatWaitsIsFinishedToo(whileRunning: Bool) async {
    let never = BlockOperation {}
    let live = LiveCount()
    do {
      let token = LiveCount.Token(live)
      let newcomer = BlockOperation { withExtendedLifetime(token) {} }
      never ==> newcomer
      let held = HeldOperation()
      let group = GroupOperation([held])
      if whileRunning {
        queue.addOperation(group)
        await held.begun.opened()
      }
      group.cancel()
      group.addOperation(newcomer)
      held.gate.open()
      if !whileRunning { queue.addOperation(group) }
      await group.finished()
      #expect(newcomer.isFinished && newcomer.isCancelled)
    }
    // Neither it nor what it waited for is kept by the waiting.
    await live.none()
    never.start()
  }

  @Test func aPlainNewcomerThatIsNotReadyThoughCancelledIsLeftToFoundation() async {
    final class Unready: Operation, @unchecked Sendable {
      private let allowed = Locked(false)

      override var isReady: Bool { allowed.withLock { $0 } && super.isReady }

      func allow() {
        willChangeValue(for: \.isReady)
        allowed.withLock { $0 = true }
        didChangeValue(for: \.isReady)
      }
    }
    let group = GroupOperation()
    group.cancel()
    queue.addOperation(group)
    await group.finished()
    let newcomer = Unready()
    group.addOperation(newcomer)
    #expect(newcomer.isCancelled && !newcomer.isFinished)
    newcomer.allow()
    await newcomer.finished()
  }

  @Test func aGroupThatIsReleasedUnstartedLetsGoOfWhatItsPlainMembersWaitFor() async {
    let live = LiveCount()
    do {
      let token = LiveCount.Token(live)
      let never = BlockOperation { withExtendedLifetime(token) {} }
      let member = BlockOperation {}
      never ==> member
      _ = GroupOperation([member])
    }
    await live.none()
  }

  @Test func aNewcomerOfAGroupThatEndsWhileItIsBeingCancelledFinishesUnexecuted() async {
    let held = HeldOperation()
    let newcomer = NoteOperation("newcomer", journal)
    let group = GroupOperation([held])
    group.addObserver(
      OperationObserver(didCancel: { _ in
        // Its members have not been told yet, and the last of them ends by itself.
        held.gate.open()
        #expect(group.isFinished)
        group.addOperation(newcomer)
      })
    )
    queue.addOperation(group)
    await held.begun.opened()
    group.cancel()
    #expect(newcomer.isCancelled && newcomer.isFinished)
    #expect(journal.entries.isEmpty)
  }

  @Test func theErrorOfACancellationIsTheGroupsOwn() async {
    let group = GroupOperation("G") { NoteOperation("a", journal) }
    group.cancel(with: TestError("no more"))
    let error = await #expect(throws: AggregateError.self) { try await queue.run(group) }
    #expect(error?.failures.map { "\($0)" } == ["G: no more"])
  }

  @Test func withoutAnErrorItIsACancellationError() async {
    let group = GroupOperation([NoteOperation("a", journal)])
    group.cancel()
    await #expect(throws: CancellationError.self) { try await queue.run(group) }
  }
}
