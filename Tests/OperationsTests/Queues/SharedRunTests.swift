import Foundation
import OperationsTestSupport
import Soak
import Testing

@testable import Operations

@Suite(.timeLimit(.minutes(5)))
struct SharedRunTests {
  private let domain = ExclusivityDomain()
  private let queue = OperationQueue()

  private let logins = Journal<HeldResult>()

  private func login() async throws -> Int {
    try await queue.run(sharing: "login", in: domain) { [logins] in
      let login = HeldResult().named("login \(logins.count + 1)")
      login.finishesWhenCancelled = true
      logins.write(login)
      return login
    }
  }

  /// Returns the login with this number when it executes.
  private func startedLogin(_ number: Int) async -> HeldResult {
    await logins.reaches(number)
    let login = logins.entries[number - 1]
    await login.begun.opened()
    return login
  }

  /// Waits until this many callers share the run under a key.
  private func callers<T: Sendable>(_ count: Int, of key: ExclusivityKey = "login", _ type: T.Type = Int.self) async {
    await poll { (domain.sharedRuns.withLock { $0[key] } as? SharedRun<T>)?.state.withLock(\.callers) == count }
  }

  @Test(arguments: [nil, TestError("wrong password")])
  func allCallersMeanwhileGetTheOneOutcome(error: TestError?) async {
    let tasks = (0..<10).map { _ in Task { try await login() } }
    await callers(10)
    let first = await startedLogin(1)
    #expect(domain.holders(of: "login") == ["login 1"])
    if let error { first.finish(with: error) } else { first.finish(returning: 1) }
    for task in tasks { #expect(await words { "\(try await task.value)" } == error?.description ?? "1") }
    #expect(logins.count == 1 && domain.sharedRuns.withLock { $0.isEmpty })
  }

  @Test func whatTheOperationWaitsForIsRunAsWell() async throws {
    let length = try await queue.run(sharing: "text", in: domain) { ResultOperation { "text" }.map(\.count) }
    #expect(length == 4)
  }

  @Test func aGroupMayBeShared() async throws {
    let held = HeldOperation()
    // A second group could not take the same member.
    @Sendable func sync() async throws {
      try await queue.run(sharing: "sync", in: domain) { GroupOperation("Sync") { held } }
    }
    let first = Task { try await sync() }
    await held.begun.opened()
    let second = Task { try await sync() }
    await callers(2, of: "sync", Void.self)
    held.finish(with: TestError("gone"))
    for caller in [first, second] {
      let error = await #expect(throws: AggregateError.self) { try await caller.value }
      #expect(error?.failures.map(\.path.count) == [2])
    }
  }

  /// Only then it can be found out that the operation would wait for this caller.
  @Test func aCallerWaitsUntilTheOperationHasBeenAdded() async {
    let (making, made) = (Gate(), Gate())
    let source = TaskOperation { [queue, domain] in
      await making.opened()
      return try await queue.run(sharing: "key", in: domain) { ResultOperation { 0 } }
    }
    queue.addOperation(source)
    let first = Task {
      try await queue.run(sharing: "key", in: domain) {
        making.open()
        made.pass()
        return source.map { $0 }
      }
    }
    await callers(2, of: "key")
    made.open()
    let results = [await first.result, await Task { try await source.value }.result]
    #expect(results.compactMap(\.code) == [.inputUnavailable, .waitCycle])
  }

  @Test(arguments: [2, 3]) func onlyTheCancellationOfTheLastCallerCancelsIt(count: Int) async throws {
    let tasks = (0..<3).map { _ in Task { try await login() } }
    await callers(3)
    let first = await startedLogin(1)
    for task in tasks[..<count] { task.cancel() }
    for task in tasks[..<count] { await #expect(throws: CancellationError.self) { try await task.value } }
    #expect(first.isCancelled == (count == 3) && first.isFinished == first.isCancelled && logins.count == 1)
    if count == 3 { return }
    first.finish(returning: 1)
    #expect(try await tasks[2].value == 1)
  }

  @Test(arguments: [true, false])
  func aCallerAfterItWasCancelled_startsANewOneThatWaitsForItsEnd(byCaller: Bool) async throws {
    let (begun, end) = (Gate(), Gate())
    let first = Task {
      try await queue.run(sharing: "login", in: domain) { stubbornWork(asTask: true, begun, until: end) { 1 } }
    }
    // Cancelled before it starts, it would end at once.
    await begun.opened()
    if byCaller {
      first.cancel()
      await #expect(throws: CancellationError.self) { try await first.value }
    } else {
      queue.cancelAllOperations()
    }
    #expect(queue.operations.first?.isCancelled == true)
    let second = Task { try await login() }
    await poll { !domain.waiting(for: "login").isEmpty }
    #expect(logins.count == 1 && domain.waiting(for: "login") == ["login 1"])
    end.open()
    await startedLogin(1).finish(returning: 1)
    #expect(try await second.value == 1)
    await #expect(throws: CancellationError.self) { try await first.value }
  }

  @Test func aCallerThatIsCancelledBefore_startsNothing() async {
    let task = cancelledTask { try await login() }
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(logins.count == 0)
  }

  @Test func underCancellationAtAnyMoment_allCallersReturnAndTheOperationsAreReleased() async {
    let (running, live) = (Locked(0), LiveCount())
    for _ in 0..<100 {
      let tasks = (0..<6).map { _ in
        Task {
          try await queue.run(sharing: "login", in: domain) {
            let token = LiveCount.Token(live)
            return TaskOperation {
              running.withLock { $0 += 1 }
              await Task.yield()
              #expect(running.withLock { $0 } == 1)
              running.withLock { $0 -= 1 }
              return withExtendedLifetime(token) { 1 }
            }
          }
        }
      }
      await onThreads(2) { thread in
        for index in stride(from: thread, to: 6, by: 2) where index != 3 { tasks[index].cancel() }
      }
      for (index, task) in tasks.enumerated() {
        let result = await task.result
        if index == 3 { #expect(throws: Never.self) { try result.get() } }
      }
    }
    await queue.finished()
    #expect(domain.isUnused)
    await live.none()
  }
}
