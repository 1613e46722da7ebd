import Foundation
import OperationsTestSupport
import Testing

@testable import Operations

/// What runs a body and returns its value, in a queue and in a group.
struct Verb: Sendable, CustomTestStringConvertible {
  typealias Body = @Sendable () throws -> Int

  let testDescription: String
  let call: @Sendable (any OperationContainer, @escaping Body) async throws -> Int

  init(_ name: String, _ call: @escaping @Sendable (any OperationContainer, @escaping Body) async throws -> Int) {
    (testDescription, self.call) = (name, call)
  }

  static let all = [
    Verb("run an operation with a value") { try await $0.run(ResultOperation($1)) },
    Verb("run an operation") { container, body in
      let value = Locked(0)
      let group = GroupOperation([ResultOperation { try value.withLock { $0 = try body() } }])
      try await container.run(group)
      return value.withLock { $0 }
    },
    Verb("run a closure") { container, body in try await container.run { try body() } },
    Verb("run an asynchronous closure") { container, body in
      try await container.run {
        await Task.yield()
        return try body()
      }
    },
    Verb("add a closure") { container, body in try await container.addTask("task") { try body() }.value },
    Verb("add an asynchronous closure") { container, body in
      let task = container.addTask("task") {
        await Task.yield()
        return try body()
      }
      return try await task.value
    },
    Verb("with a slot") { container, body in try await container.withSlot("slot") { try body() } },
    Verb("results of elements") { container, body in
      try await one(of: container.results(of: [1], atMost: 1) { _ in ResultOperation(body) })
    },
    Verb("results of a closure") { container, body in
      try await one(of: container.results(of: [1], atMost: 1) { _ in try body() })
    },
    Verb("results of an asynchronous sequence") { container, body in
      let elements = AsyncStream { $0.yield(1) }
      return try await one(of: container.results(of: elements, atMost: 1, ordered: true) { _ in try body() })
    },
    Verb("results of operations") { try await one(of: $0.results(of: [ResultOperation($1)])) },
    Verb("first") { try await $0.first(of: [ResultOperation($1)]) },
    Verb("run what is shared") { container, body in
      try await container.run(sharing: ExclusivityKey(UUID())) { ResultOperation(body) }
    },
    Verb("run a group that is shared") { container, body in
      let value = Locked(0)
      try await container.run(sharing: ExclusivityKey(UUID())) {
        GroupOperation([ResultOperation { try value.withLock { $0 = try body() } }])
      }
      return value.withLock { $0 }
    },
  ]

  private static func one<S: AsyncSequence>(of results: S) async throws -> Int
  where S.Element == (element: Int, result: Result<Int, any Error>) {
    for try await (_, result) in results { return try result.get() }
    throw CancellationError()
  }

  private static func one<T>(of results: OperationResults<T, Int>) async throws -> Int {
    for await (_, result) in results { return try result.get() }
    throw CancellationError()
  }
}

@Suite(.timeLimit(.minutes(5)))
struct ContainerTests: NotingSuite {
  enum Kind: CaseIterable {
    case queue, scheduler, group, subclassOfGroup

    func make(limit: Int = OperationQueue.defaultMaxConcurrentOperationCount) -> any OperationContainer {
      final class Uploads: GroupOperation, @unchecked Sendable {}
      switch self {
      case .queue: return OperationQueue.limited(to: limit)
      case .scheduler: return SerialScheduler(name: "scheduler").queue
      case .group: return GroupOperation("group", maxConcurrentOperationCount: limit).started()
      case .subclassOfGroup: return Uploads("uploads", maxConcurrentOperationCount: limit).started()
      }
    }
  }

  let journal = Journal<String>()

  /// The error of an operation, which `first` throws inside another one.
  private func cause(of error: (any Error)?) -> (any Error)? {
    guard let aggregate = error as? AggregateError else { return error }
    return aggregate.failures.isEmpty ? CancellationError() : aggregate.failures.first?.error
  }

  private func failure(_ verb: Verb, in container: any OperationContainer, _ body: @escaping Verb.Body) async
    -> (any Error)?
  {
    let error = await #expect(throws: (any Error).self) { try await verb.call(container, body) }
    return cause(of: error)
  }

  @Test(arguments: Verb.all, Kind.allCases)
  func eachVerb_runsAnOperationOfTheContainer(_ verb: Verb, in kind: Kind) async throws {
    let container = kind.make()
    #expect(try await verb.call(container) { container.operations.count } == 1)
    #expect(await failure(verb, in: container) { throw TestError("failed") } as? TestError == TestError("failed"))
    guard let group = container as? GroupOperation else { return }
    let isFailureOfTheGroup = verb.testDescription != "with a slot"
    await group.waitForRoom(below: 1)
    #expect(group.failures.map(\.description).contains { $0.contains("failed") } == isFailureOfTheGroup)
    group.finish()
    await group.finished()
    let shutDown = await failure(verb, in: group) { self.journalled() }
    #expect((shutDown as? OperationError)?.code == .shutDown && journal.entries.isEmpty)
  }

  private func journalled() -> Int {
    journal.write("executed")
    return 1
  }

  @Test(arguments: Verb.all, Kind.allCases)
  func inACancelledTaskOrGroup_eachVerbThrowsACancellationError(_ verb: Verb, in kind: Kind) async {
    let container = kind.make()
    (container as? OperationQueue)?.isSuspended = true
    (container as? GroupOperation)?.isSuspended = true
    let task = cancelledTask { try await verb.call(container) { 1 } }
    #expect(cause(of: await #expect(throws: (any Error).self) { try await task.value }) is CancellationError)
    (container as? OperationQueue)?.isSuspended = false
    if let group = container as? GroupOperation {
      group.cancel()
      #expect(await failure(verb, in: group) { self.journalled() } is CancellationError)
      #expect(journal.entries.isEmpty && group.failures.isEmpty)
    }
  }

  @Test(arguments: Verb.all, Kind.allCases)
  func twoThatFillTheContainer_andWaitForAnother_endWithAnError(_ verb: Verb, in kind: Kind) async {
    let (container, count) = (kind.make(limit: 2), kind == .scheduler ? 1 : 2)
    let begun = Journal<Int>()
    let outer = (0..<count).map { number in
      container.addTask("outer \(number)") {
        begun.write(number)
        await begun.reaches(count)
        return try await verb.call(container) { 1 }
      }
    }
    for operation in outer { await operation.finished() }
    let errors = outer.compactMap { cause(of: $0.errors.first) as? OperationError }
    #expect(errors.map(\.code) == [.waitCycle])
  }

  @Test(arguments: Kind.allCases) func operationsAreFoundAndCancelledByTheirNames(in kind: Kind) async {
    let container = kind.make(limit: 1)
    let (held, plain) = (HeldOperation().named("held"), plain("page", journal))
    container.addTask("never") {}.cancel()
    (container as? OperationQueue)?.addOperations([held, note("page"), plain, note("other")])
    (container as? GroupOperation)?.addOperations([held, note("page"), plain, note("other")])
    await held.begun.opened()
    #expect(container.stallReport().entries.count { $0.operation == "page" } == 2)
    #expect(container.operations(named: "page").count == 2 && container.operations(named: "page").last === plain)
    #expect(container.cancelOperations(named: "page") == 2 && container.cancelOperations(named: "page") == 0)
    #expect(container.cancelWaitingOperations() == 1 && !held.isCancelled)
    await held.finished(opening: held.gate)
    await (container as? OperationQueue)?.finished()
    await (container as? GroupOperation)?.waitForRoom(below: 1)
    #expect(container.operations.isEmpty && journal.entries.isEmpty)
  }

  @Test(arguments: Kind.allCases) func run_addsWhatTheOperationWaitsFor_andNothingTwice(in kind: Kind) async throws {
    let container = kind.make()
    let (first, second, last) = (note("first"), note("second"), note("last"))
    let plain = plain("plain", journal)
    first ==> second ==> last
    plain ==> last
    let run = Task { try await container.run(last) }
    await second.finished()
    #expect(!container.operations.contains(plain) && container.operations(named: "last") == [last])
    await OperationQueue().run(settling: [plain])
    try await run.value
    #expect(Set(journal.entries) == ["first", "second", "plain", "last"] && journal.entries.last == "last")
  }

  /// The work of a task may use its keys, in a group as well.
  @Test(arguments: Kind.allCases) func whatIsRunInsideKeys_mayUseThem(in kind: Kind) async throws {
    let (container, domain) = (kind.make(), ExclusivityDomain())
    let (first, last) = (note("first").exclusive("key", in: domain), note("last").exclusive("key", in: domain))
    first ==> last
    try await withKeys(.exclusive("key"), in: domain) { try await container.run(last) }
    #expect(journal.entries == ["first", "last"])
  }

  @Test func theMainQueueRunsAClosure() async throws {
    #expect(try await OperationQueue.main.run { SerialScheduler.main.isCurrent })
  }
}
