import Foundation
import Operations
import OperationsTestSupport
import Testing

/// The statements of the page “Effects” about groups and keys.
@Suite(.timeLimit(.minutes(5)))
struct GroupEffectsTests {
  private final class Watched: GroupOperation, @unchecked Sendable {
    private let now = DispatchSemaphore(value: 1)
    let calls = Journal<Bool>()

    override func operation(_ member: Operation, didFinishWith errors: [any Error]) -> [any Error] {
      let isAlone = now.wait(timeout: .now()) == .success
      calls.write(isAlone)
      Thread.sleep(forTimeInterval: 0.0005)
      if isAlone { now.signal() }
      return []
    }
  }

  @Test func theHookIsNeverCalledTwiceAtOnce() async throws {
    let group = Watched((0..<200).map { _ in ResultOperation { throw CocoaError(.fileNoSuchFile) } })
    try await OperationQueue().run(group)
    #expect(group.calls.entries == Array(repeating: true, count: 200))
  }

  @Test func membersRunOnThreadsOfTheGroupNotOfItsQueue() async throws {
    let (queue, places) = (OperationQueue(), Journal<Place>())
    try await queue.run(GroupOperation([ResultOperation { places.write(.here) }]))
    #expect(places.entries.allSatisfy { !$0.isInTask && $0.queue != ObjectIdentifier(queue) && !$0.isOnMain })
    try await OperationQueue.main.run(GroupOperation([ResultOperation { places.write(.here) }]))
    #expect(places.count == 2 && places.entries.allSatisfy { !$0.isOnMain })
  }

  @Test func cancellingSetsTheOwnFlagThenTheMembers() async {
    let member = ObservedOperation()
    let group = GroupOperation([member])
    let wasCancelled = Journal<Bool>()
    member.addObserver(
      OperationObserver(didCancel: { [weak group] member in
        wasCancelled.write(group?.isCancelled == true && member.isCancelled)
      })
    )
    OperationQueue().addOperation(group)
    await member.begun.opened()
    let thread = await onThread { group.cancel() }
    #expect(wasCancelled.entries == [true] && member.places(of: "didCancel") == [thread])
    #expect(!group.isFinished)
    member.finish()
    await group.finished()
  }

  @Test func neitherSuspensionNorALimitDelaysTheEndOfACancelledGroup() async {
    let members = (0..<10).map { _ in AsyncOperation() }
    let group = GroupOperation(members)
    group.isSuspended = true
    group.maxConcurrentOperationCount = 0
    OperationQueue().addOperation(group)
    group.cancel()
    await group.finished()
    #expect(members.allSatisfy { $0.isFinished && $0.isCancelled && $0.errors.isEmpty })
  }

  @Test func aGroupIsDoneWithWhatItsMembersEndWith() async throws {
    let group = GroupOperation("Import") { ResultOperation<Int> { throw CocoaError(.fileNoSuchFile) }.named("page") }
    let error = await #expect(throws: AggregateError.self) { try await OperationQueue().run(group) }
    #expect(error?.failures.map(\.path) == [["Import", "page"]])
  }

  @Test func aCycleCancelsItsMembers() async {
    let (a, b) = (AsyncOperation(), AsyncOperation())
    a ==> b ==> a
    let group = GroupOperation([a, b])
    let error = await #expect(throws: AggregateError.self) { try await OperationQueue().run(group) }
    #expect(error?.errors(of: OperationError.self).map(\.code) == [.dependencyCycle, .dependencyCycle])
    #expect(a.isCancelled && a.isFinished && b.isFinished)
  }

  @Test func progressIsToldToATask() async throws {
    let group = GroupOperation([AsyncOperation(), AsyncOperation()])
    let updates = group.progressUpdates
    try await OperationQueue().run(group)
    var last = 0.0
    for await fraction in updates { last = fraction }
    #expect(last == 1)
  }

  // MARK: Keys

  @Test func whatIsDroppedEndsOnTheThreadThatAddsIt() async {
    let (queue, domain) = (OperationQueue(), ExclusivityDomain())
    let (holder, dropped) = (ObservedOperation().named("holder"), ObservedOperation())
    queue.addOperation(holder.exclusive("key", in: domain))
    await holder.begun.opened()
    let thread = await onThread {
      queue.addOperation(dropped.exclusive("key", policy: .drop, in: domain))
    }
    #expect(dropped.isFinished && dropped.isCancelled && dropped.places(of: "didFinish") == [thread])
    #expect((dropped.errors.first as? OperationError)?.code == .excluded)
    #expect(domain.holders(of: "key") == ["holder"])
    holder.finish()
    await queue.finished()
  }

  @Test func whoReplacesCancelsOnTheThreadThatAsks() async {
    let (queue, domain) = (OperationQueue(), ExclusivityDomain())
    let (holder, newest) = (ObservedOperation(), ObservedOperation())
    queue.addOperation(holder.exclusive("key", in: domain))
    await holder.begun.opened()
    let thread = await onThread { queue.addOperation(newest.exclusive("key", policy: .replace, in: domain)) }
    #expect(holder.places(of: "didCancel") == [thread] && !newest.isExecuting)
    holder.finish()
    await newest.begun.opened()
    #expect(newest.places(of: "execute").allSatisfy { $0.isOn(queue) })
    newest.finish()
    await queue.finished()
  }

  @Test func whoWaitsForAKeyTakesNoSlotAndMayBeCancelledAtOnce() async throws {
    let (queue, domain) = (OperationQueue(), ExclusivityDomain())
    let holder = ObservedOperation()
    OperationQueue().addOperation(holder.exclusive("key", in: domain))
    await holder.begun.opened()
    queue.maxConcurrentOperationCount = 1
    let waiting = ObservedOperation().named("waiting")
    queue.addOperation(waiting.exclusive("key", in: domain))
    try await queue.run(AsyncOperation())
    #expect(domain.waiting(for: "key") == ["waiting"])
    waiting.cancel()
    await waiting.finished()
    #expect(!waiting.names.contains("execute") && domain.waiting(for: "key").isEmpty)
    holder.finish()
    await holder.finished()
  }

  @Test func whatIsSharedIsMadeInTheTaskOfTheCaller() async throws {
    let places = Journal<Place>()
    let value = try await OperationQueue().run(sharing: "key", in: ExclusivityDomain()) {
      places.write(.here)
      return ResultOperation { 1 }
    }
    #expect(value == 1 && places.entries.map(\.isInTask) == [true])
  }
}
