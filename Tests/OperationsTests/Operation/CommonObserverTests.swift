import Foundation
import OperationsTestSupport
import Soak
import Testing

@testable import Operations

/// Observers of all operations of a queue, and of all members of a group.
@Suite(.timeLimit(.minutes(5)))
struct CommonObserverTests {
  private let queue = OperationQueue()
  private let started = Journal<String>()
  private let ended = Journal<String>()

  private var observer: OperationObserver {
    OperationObserver(
      didStart: { [started] in started.write($0.displayName) },
      didFinish: { [ended] in ended.write($0.displayName) }
    )
  }

  @Test func anObserverOfAQueue_isAddedToWhatComesLater() async throws {
    let (held, other) = (HeldOperation(), OperationQueue())
    queue.addOperation(held)
    queue.addObserver(observer)
    queue.addOperation(AsyncOperation().named("a"))
    queue.addOperations([AsyncOperation().named("b"), BlockOperation {}])
    queue.addTask("c") {}
    try await queue.withSlot("d") {}
    let (first, last) = (AsyncOperation().named("e"), GroupOperation([AsyncOperation()]).named("f"))
    first ==> last
    try await queue.run(last)
    try await other.run(AsyncOperation().named("elsewhere"))
    await queue.drained(opening: [held.gate])
    await ended.reaches(6)
    for journal in [started, ended] { #expect(journal.entries.sorted() == ["a", "b", "c", "d", "e", "f"]) }
  }

  @Test func anObserver_isReleasedAfterItsQueue() async {
    let live = LiveCount()
    do {
      let (token, queue) = (LiveCount.Token(live), OperationQueue())
      queue.addObserver(OperationObserver(didFinish: { _ in withExtendedLifetime(token) {} }))
      queue.addOperation(AsyncOperation())
      await queue.finished()
    }
    while live.alive > 0 {
      _ = QueueFollowers.of(queue)
      await Task.yield()
    }
  }

  @Test func anObserverOfMembers_isAddedAtAnyDepthToWhatComesLater() async {
    let (held, inner) = (HeldOperation(), GroupOperation("inner", maxConcurrentOperationCount: 1))
    inner.addOperations([held, AsyncOperation().named("before")])
    let group = await queue.add(GroupOperation([inner]), until: held.begun)
    group.addObserver(toMembers: observer)
    inner.addOperation(AsyncOperation().named("a"))
    // It waits, so that its group does not end before the last operation is added.
    let late = AsyncOperation().named("b").waits(for: held)
    let innermost = GroupOperation([late, BlockOperation {}]).named("c")
    group.addOperations([GroupOperation([innermost]).named("d"), BlockOperation {}.named("plain")])
    let waiting = AsyncOperation().named("e")
    held ==> waiting
    group.addOperation(waiting)
    innermost.addOperation(AsyncOperation().named("f"))
    await group.finished(opening: held.gate)
    for journal in [started, ended] { #expect(journal.entries.sorted() == ["a", "b", "c", "d", "e", "f"]) }
  }

  @Test func groupsOfAnyDepth_areObserved() async {
    let (count, group) = (5_000, GroupOperation())
    group.addObserver(toMembers: observer)
    group.addOperation((0..<count).reduce(AsyncOperation()) { inner, _ in GroupOperation([inner]) })
    await queue.run(settling: [group])
    #expect(ended.count == count + 1)
  }
}
