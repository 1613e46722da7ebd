import Foundation
import OperationsTestSupport
import Soak
import Testing

@testable import Operations

@Suite(.timeLimit(.minutes(5)))
struct GroupCancellationTests {
  private let queue = OperationQueue()
  private let journal = Journal<String>()

  private func note(_ name: String) -> NoteOperation { NoteOperation(name, journal) }

  /// Groups around a leaf, the innermost first.
  private func nested(_ depth: Int) -> [GroupOperation] {
    var groups = [GroupOperation([AsyncOperation(), BlockOperation {}])]
    while groups.count < depth { groups.append(GroupOperation([groups[groups.count - 1], AsyncOperation()])) }
    return groups
  }

  @Test(arguments: [1, 15, 16, 17, 100, isThorough ? 20_000 : 4_000])
  func nestedGroupsAreCancelledWhenCancelReturns(depth: Int) async throws {
    try await onSmallStack {
      let (groups, others, levels) = (nested(depth), nested(depth), Journal<Int>())
      for (level, group) in groups.enumerated() {
        group.addObserver(OperationObserver(didCancel: { _ in levels.write(level) }))
      }
      groups[0].addObserver(
        OperationObserver(didCancel: { _ in
          others[depth - 1].cancel()
          #expect(others.flatMap(\.operations).allSatisfy { $0.isCancelled })
        })
      )
      groups[depth - 1].cancel()
      #expect((groups + others).flatMap(\.operations).allSatisfy { $0.isCancelled })
      #expect(levels.entries == Array((0..<depth).reversed()), "each group before its members")
    }
  }

  @Test func everyMemberFinishesOfAGroupThatIsCancelledBeforeItsStart() async {
    let members = ["a", "b", "nested"].map { note($0) }
    members[0] ==> members[1]
    let group = GroupOperation([members[1], members[0], GroupOperation([members[2]])]).named("G")
    let after = note("after")
    members[1] ==> after
    group.addObserver(OperationObserver(didStart: { _ in journal.write("start") }))
    group.cancel(with: TestError("no more"))
    #expect(members[0].isCancelled && members[2].isCancelled && !members[0].isFinished)
    await queue.run(settling: [group, after])
    #expect(journal.entries == ["after"] && group.failures.map { "\($0)" } == ["G: no more"])
    #expect(members.allSatisfy { $0.isFinished && $0.isCancelled })
  }

  @Test func aSuspendedGroupFinishesWhenItIsCancelled() async {
    for group in [GroupOperation([note("a")]), GroupOperation()] {
      group.isSuspended = true
      group.maxConcurrentOperationCount = 0
      queue.addOperation(group)
      group.cancel()
      await group.finished()
    }
    #expect(journal.entries.isEmpty)
  }

  @Test func cancellingWhileMembersAreAdded() async {
    for _ in 0..<100 {
      let (held, added) = (HeldOperation(), Journal<AsyncOperation>())
      let group = GroupOperation([held])
      await queue.add(group, until: held.begun)
      await onThreads(3) { thread in
        if thread == 0 {
          group.cancel()
          return held.gate.open()
        }
        for _ in 0..<20 {
          let member = AsyncOperation()
          added.write(member)
          group.addOperation(member)
        }
      }
      for operation in added.entries + [group] { await operation.finished() }
    }
  }

  @Test func noMemberExecutesThoughTheGroupStartsWhileItIsBeingCancelled() async {
    let (first, second) = (note("first"), note("second"))
    let group = GroupOperation([first, second])
    let secondHasFinished = DispatchSemaphore(value: 0)
    // It delays the cancellation, which has not reached the second member yet.
    first.addObserver(OperationObserver(didCancel: { _ in secondHasFinished.wait() }))
    second.addObserver(OperationObserver(didFinish: { _ in secondHasFinished.signal() }))
    DispatchQueue.global().async { group.cancel() }
    await poll { group.isCancelled }
    await queue.run(settling: [group])
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
      if whileRunning { await queue.add(group, until: held.begun) }
      group.cancel()
      group.addOperation(newcomer)
      held.gate.open()
      if !whileRunning { queue.addOperation(group) }
      await group.finished()
      #expect(newcomer.isFinished && newcomer.isCancelled)
    }
    // The wait retains neither the newcomer nor its dependency.
    await live.none()
    never.start()
  }

  @Test func aPlainNewcomerThatIsNotReadyThoughCancelledIsLeftToFoundation() async {
    let group = GroupOperation()
    group.cancel()
    await queue.run(settling: [group])
    let newcomer = PlainMemberTests.Willing("newcomer", journal)
    group.addOperation(newcomer)
    #expect(newcomer.isCancelled && !newcomer.isFinished)
    newcomer.agree()
    await newcomer.finished()
  }

  @Test func aGroupThatIsReleasedUnstartedLetsGoOfWhatItsPlainMembersWaitFor() async {
    let live = LiveCount()
    do {
      let never = BlockOperation { [token = LiveCount.Token(live)] in withExtendedLifetime(token) {} }
      _ = GroupOperation([never ==> BlockOperation {}])
    }
    await live.none()
  }

  @Test func aNewcomerOfAGroupThatEndsWhileItIsBeingCancelledFinishesUnexecuted() async {
    let (held, newcomer) = (HeldOperation(), note("newcomer"))
    let group = GroupOperation([held])
    group.addObserver(
      OperationObserver(didCancel: { _ in
        // The members have not been cancelled yet, and the last of them finishes by itself.
        held.gate.open()
        #expect(group.isFinished)
        group.addOperation(newcomer)
      })
    )
    await queue.add(group, until: held.begun)
    group.cancel()
    #expect(newcomer.isCancelled && newcomer.isFinished && journal.entries.isEmpty)
  }

  @Test func addingToACancelledGroupFinishesTheNewcomerUnexecuted() async {
    let group = GroupOperation([note("a")])
    group.cancel()
    let early = note("early")
    group.addOperation(early)
    await queue.run(settling: [group])
    let newcomers = [note("late"), plain("late plain", journal), GroupOperation([note("inner")])]
    group.addOperations(newcomers)
    for newcomer in newcomers { await newcomer.finished() }
    #expect(([early] + newcomers).allSatisfy { $0.isFinished && $0.isCancelled } && journal.entries.isEmpty)
  }
}
