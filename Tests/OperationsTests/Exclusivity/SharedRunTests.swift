import Foundation
import OperationsTestSupport
import Soak
import Testing

@testable import Operations

/// One operation for all callers that request it at once.
@Suite(.timeLimit(.minutes(5)))
struct SharedRunTests {
  private let domain = ExclusivityDomain()
  private let queue = OperationQueue()

  /// Returns its number when its gate is opened.
  private final class Login: ResultOperation<Int>, @unchecked Sendable {
    let begun = Gate()
    let gate = Gate()
    private let number: Int

    init(_ number: Int) {
      self.number = number
      super.init()
      named("login \(number)")
    }

    override func execute() {
      begun.open()
      gate.whenOpen { [weak self, number] in self?.finish(returning: number) }
    }

    override func didCancel() { finish() }
  }

  /// The operations that have been made.
  private let logins = Journal<Login>()

  private func login() async throws -> Int {
    try await queue.run(sharing: "login", in: domain) { [logins] in
      let login = Login(logins.count + 1)
      logins.write(login)
      return login
    }
  }

  /// Waits until this many callers share the run.
  private func callers(_ count: Int) async {
    await poll { domain.callers(sharing: "login", Int.self) == count }
  }

  @Test(arguments: [nil, TestError("wrong password")])
  func allWhoAskMeanwhileGetTheOneOutcome(error: TestError?) async throws {
    let tasks = (0..<10).map { _ in Task { try await login() } }
    await callers(10)
    #expect(logins.count == 1)
    await logins.entries[0].begun.opened()
    #expect(domain.holders(of: "login") == ["login 1"])
    if let error { logins.entries[0].finish(with: error) } else { logins.entries[0].gate.open() }
    for task in tasks {
      if let error {
        await #expect(throws: error) { try await task.value }
      } else {
        #expect(try await task.value == 1)
      }
    }
    #expect(domain.sharedRuns.withLock { $0.isEmpty })
  }

  @Test func theNextCallerAfterItsEndStartsANewOne() async throws {
    for number in 1...3 {
      async let value = login()
      await logins.reaches(number)
      logins.entries[number - 1].gate.open()
      #expect(try await value == number)
    }
  }

  @Test func aGroupMayBeShared() async throws {
    let held = HeldOperation()
    let made = Journal<Void>()
    @Sendable func sync() async throws {
      try await queue.run(sharing: "sync", in: domain) {
        made.write(())
        return GroupOperation("Sync") { held }
      }
    }
    let first = Task { try await sync() }
    await held.begun.opened()
    let second = Task { try await sync() }
    await poll { domain.callers(sharing: "sync", Void.self) == 2 }
    held.finish(with: TestError("gone"))
    for caller in [first, second] {
      let error = await #expect(throws: AggregateError.self) { try await caller.value }
      #expect(error?.failures.map(\.path.count) == [2])
    }
    #expect(made.count == 1)
  }

  @Test func oneCallersCancellationLeavesItToTheOthers() async throws {
    let first = Task { try await login() }
    await callers(1)
    let second = Task { try await login() }
    await callers(2)
    first.cancel()
    await #expect(throws: CancellationError.self) { try await first.value }
    #expect(!logins.entries[0].isCancelled)
    logins.entries[0].gate.open()
    #expect(try await second.value == 1)
  }

  @Test func theLastOnesCancelsIt() async {
    let tasks = (0..<3).map { _ in Task { try await login() } }
    await callers(3)
    await logins.entries[0].begun.opened()
    for task in tasks { task.cancel() }
    for task in tasks { await #expect(throws: CancellationError.self) { try await task.value } }
    #expect(logins.entries[0].isCancelled && logins.entries[0].isFinished && logins.count == 1)
  }

  @Test(arguments: [true, false])
  func whoAsksAfterItWasCancelledGetsANewOneThatWaitsForItsEnd(byCaller: Bool) async throws {
    let (begun, holding) = (Gate(), HeldOperation())
    let first = Task {
      try await queue.run(sharing: "login", in: domain) {
        TaskOperation {
          begun.open()
          await holding.finished()
          return 1
        }
      }
    }
    // Cancelled before it starts, it would end at once.
    await begun.opened()
    if byCaller { first.cancel() } else { queue.cancelAllOperations() }
    await poll { queue.operations.first?.isCancelled == true }
    let second = Task { try await login() }
    await poll { !domain.waiting(for: "login").isEmpty }
    #expect(logins.count == 1 && domain.waiting(for: "login") == ["login 1"])
    holding.start()
    holding.gate.open()
    await logins.entries[0].begun.opened()
    logins.entries[0].gate.open()
    #expect(try await second.value == 1)
    await #expect(throws: CancellationError.self) { try await first.value }
  }

  @Test func whoIsCancelledBeforeItAsksStartsNothing() async {
    let task = Task {
      unsafe withUnsafeCurrentTask { task in unsafe task?.cancel() }
      return try await login()
    }
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(logins.count == 0)
  }

  @Test func underCancellationAtAnyMomentEverybodyReturns() async {
    let running = Locked(0)
    for _ in 0..<100 {
      let tasks = (0..<6).map { _ in
        Task {
          try await queue.run(sharing: "login", in: domain) {
            TaskOperation {
              running.withLock { $0 += 1 }
              await Task.yield()
              #expect(running.withLock { $0 } == 1)
              running.withLock { $0 -= 1 }
              return 1
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
  }

  @Test func theOperationIsReleased() async throws {
    let live = LiveCount()
    for _ in 0..<10 {
      _ = try await queue.run(sharing: "login", in: domain) {
        let token = LiveCount.Token(live)
        return ResultOperation { withExtendedLifetime(token) { 1 } }
      }
    }
    await live.none()
  }
}

extension ExclusivityDomain {
  /// The number of callers that share the current run, or nil if there is none.
  fileprivate func callers<T: Sendable>(sharing key: ExclusivityKey, _ type: T.Type) -> Int? {
    (sharedRuns.withLock { $0[key] } as? SharedRun<T>)?.callerCount
  }
}
