import Foundation
import Operations
import Testing

@Suite(.timeLimit(.minutes(5)))
struct ErrorTests {
  private let queue = OperationQueue()

  private func failure(_ path: String..., error: any Error) -> OperationFailure {
    OperationFailure(path: path, error: error)
  }

  // MARK: The types

  @Test func operationErrors_areEqualIfTheirCodesAre_andMatchTheirCode() {
    let late = OperationError(.timedOut, "a")
    #expect(late == OperationError(.timedOut, "b", underlyingErrors: [TestError("c")]))
    #expect(late != OperationError(.shutDown, "a"))
    #expect(OperationError.Code.timedOut ~= late && !(OperationError.Code.shutDown ~= late))
    #expect(!(OperationError.Code.timedOut ~= TestError("a")))
    let codes: Set<OperationError.Code> = [
      .timedOut, .dependencyCycle, .conditionFailed, .inputUnavailable, .excluded, .waitCycle, .shutDown,
      .outputMissing,
    ]
    #expect(codes.count == 8)
  }

  @Test func descriptionsNameTheCauseAndThePath() {
    let error = OperationError(.inputUnavailable, "“b” has no input.", underlyingErrors: [TestError("no network")])
    #expect("\(error)" == "“b” has no input. Cause: no network" && error.localizedDescription == "\(error)")
    let failure = failure("Import", "Download", "page 3", error: TestError("no network"))
    #expect("\(failure)" == "Import › Download › page 3: no network" && failure.localizedDescription == "\(failure)")
    #expect("\(AggregateError([failure]))" == "\(failure)")
    let both = AggregateError([failure, failure])
    #expect("\(both)" == "2 failures:\n- \(failure)\n- \(failure)" && both.localizedDescription == "\(both)")
  }

  @Test func aFailure_doesNotRepeatTheNameOfItsOperation() {
    func text(_ path: String..., message: String) -> String {
      "\(OperationFailure(path: path, error: OperationError(.timedOut, message)))"
    }
    #expect(text("Import", "page 3", message: "“page 3” was late.") == "Import › page 3: was late.")
    #expect(text("Import", "page 3", message: "“page 30” was late.") == "Import › page 3: “page 30” was late.")
    #expect(text("Import", "page 3", message: "“Import” was late.") == "Import › page 3: “Import” was late.")
    #expect(text("a", message: "“a” “a” b") == "a: “a” b" && text(message: "“a” was late.") == "“a” was late.")
  }

  @Test func anOperationWithoutAName_hasTheNameOfItsType() {
    final class Upload<Item: Sendable>: ResultOperation<Item>, @unchecked Sendable {}
    let operations: [Operation] = [
      ResultOperation { 1 }.map { [$0] }, GroupOperation(), Upload<[Int]> { [] }, ResultOperation<Int>(),
    ]
    let names = ["transform operation", "group operation", "Upload", "result operation"]
    #expect(operations.map { OperationGraph([$0]).nodes.first?.name } == names)
  }

  @Test func aClosureWithoutAName_hasThatOfItsFileAndLine() async throws {
    let (queue, group, line) = (OperationQueue.suspended(), GroupOperation(), #line + 2)
    let operations: [Operation] = [
      TaskOperation { await Task.yield() }, ResultOperation {}, AsyncBlockOperation { _ in },
    ]
    queue.addTask {}
    group.addTask { await Task.yield() }
    immediately { try await queue.run {} }
    immediately { for await _ in queue.results(of: [1], atMost: 1, { _ in await Task.yield() }) {} }
    let names = [operations, queue.operations, group.operations].map {
      $0.map { OperationGraph([$0]).nodes.first?.name }
    }
    let lines = [[line, line, line], [line + 2, line + 4, line + 5], [line + 3]]
    #expect(names == lines.map { $0.map { "ErrorTests.swift, line \($0)" } })
    queue.cancelAllOperations()
    await queue.drained()
  }

  @Test func durations_haveNoNeedlessDigits() {
    let durations: [Duration] = [.seconds(10), .seconds(1), .milliseconds(500), .zero, .seconds(-1), .microseconds(20)]
    let texts = ["10 seconds", "1 second", "0.5 seconds", "0 seconds", "-1 seconds", "2e-05 seconds"]
    #expect(durations.map(\.text) == texts)
  }

  @Test func thePrimaryFailure_isNoConsequenceOfAnother() {
    let cause = TestError("cause")
    let echo = OperationError(.inputUnavailable, "echo", underlyingErrors: [cause])
    let condition = OperationError(.conditionFailed, "a dependency failed", underlyingErrors: [cause])
    let own = OperationError(.conditionFailed, "no battery", underlyingErrors: [TestError("12 %")])
    func primary(_ errors: any Error...) -> [String] {
      AggregateError(zip(["a", "b", "c"], errors).map { failure($0, error: $1) }).primary.path
    }
    #expect(primary(echo, condition, cause) == ["c"])
    #expect(primary(echo, own) == ["b"])
    #expect(primary(echo, echo) == ["a"])
    #expect(primary(OperationError(.inputUnavailable, "never set"), own) == ["a"], "no failure caused that")
    let errors: [any Error] = [echo, condition, cause, own]
    let aggregate = AggregateError(errors.map { failure("a", error: $0) })
    #expect(aggregate.rootFailures.map { "\($0.error)" } == ["\(cause)", "\(own)"])
    #expect(aggregate.errors(of: OperationError.self).map(\.message) == [echo, condition, own].map(\.message))
    #expect(failure("a", error: echo).isConsequence && !failure("a", error: condition).isConsequence)
    #expect(AggregateError([failure("a", error: echo)]).rootFailures.isEmpty)
  }

  @Test func failuresOfAGroup_areMarkedAsConsequences() async {
    let (cause, dependent) = (failing("cause"), AsyncOperation())
    dependent.addCondition(.noFailedDependencies)
    let group = GroupOperation("group") { cause ==> dependent }
    await queue.run(settling: [group])
    #expect(group.failures.map(\.isConsequence) == [false, true])
  }

  // MARK: Paths of failures that an operation awaited

  private func failing(_ name: String) -> AsyncBlockOperation {
    AsyncBlockOperation { $0.finish(with: TestError(name)) }.named(name)
  }

  private func expectPaths(_ paths: [[String]], of operation: AsyncOperation) async {
    let error = await #expect(throws: AggregateError.self) { try await queue.run(operation) }
    #expect(error?.failures.map(\.path) == paths)
    #expect(error?.errors(of: TestError.self).count == paths.count && operation.errors.count == paths.count)
  }

  @Test(arguments: 1...2) func taskThatAwaitsAGroup_keepsItsPaths(count: Int) async {
    let pages = GroupOperation(chain((1...count).map { failing("page \($0)") })).named("Download")
    let task = TaskOperation { try await OperationQueue().run(pages) }.named("sync")
    let outer = GroupOperation("Import") { task }
    let paths = (1...count).map { ["Import", "sync", "Download", "page \($0)"] }
    await expectPaths(paths, of: outer)
    let error = await #expect(throws: AggregateError.self) { try await task.completed() }
    #expect(error?.failures.map(\.path) == paths.map { Array($0.dropFirst()) })
  }

  @Test func retryOfAGroup_keepsThePathOfTheLastAttempt() async {
    let retry = RetryOperation(attempts: 2) { number in GroupOperation("Download") { failing("page \(number)") } }
    await expectPaths([["patient", "Download", "page 2"]], of: retry.named("patient"))
    #expect(retry.attemptErrors.count == 2 && retry.attemptErrors.allSatisfy { $0 is AggregateError })
  }

  @Test func flatMap_keepsThePathsOfTheOperationItLeadsTo() async {
    let aggregate = AggregateError([failure("page", error: TestError("1"))])
    let (start, sync) = (ResultOperation { 1 }, AsyncBlockOperation { $0.finish(with: aggregate) }.named("sync"))
    let following = start.flatMap { _ in sync }.named("following")
    queue.addOperation(start)
    await expectPaths([["following", "sync", "page"]], of: following)
  }

  @Test func aggregateWithinAnAggregate_isFlattened() async {
    let inner = AggregateError([failure("c", error: TestError("1"))])
    let outer = AggregateError([failure("b", error: inner), failure(error: TestError("2"))])
    let operation = AsyncBlockOperation { $0.finish(with: outer) }.named("a")
    await expectPaths([["a", "b", "c"], ["a"]], of: operation)
  }

  @Test func flatMaps_keepAllNames() async {
    let group = GroupOperation("Import") {
      ResultOperation { 1 }.flatMap { _ in
        ResultOperation { 2 }.flatMap { _ in
          TaskOperation<Int> {
            try await OperationQueue().run(GroupOperation("G") { failing("m") })
            return 3
          }.named("task")
        }.named("second")
      }.named("first")
    }
    await expectPaths([["Import", "first", "second", "task", "G", "m"]], of: group)
  }

  @Test func flatMapToAnOperationOfAQueue_keepsBothNames() async {
    let login = ResultOperation<Int> { throw TestError("wrong") }.named("login")
    queue.addOperation(login)
    let group = GroupOperation("Import") { ResultOperation { 1 }.flatMap { _ in login }.named("page") }
    await expectPaths([["Import", "page", "login"]], of: group)
  }

  // MARK: The size of causes

  private func depth(of error: any Error) -> Int {
    Array(sequence(first: error) { ($0 as? OperationError)?.underlyingErrors.first }).count
  }

  @Test func pairsOfPairsOfValues_nameOneRoot() async throws {
    var last: ResultOperation<Int> = ResultOperation { throw TestError("boom") }
    for _ in 0..<40 { last = zip(last.map { $0 }, last.map { $0 }).map { $0.0 + $0.1 } }
    _ = try? await queue.run(GroupOperation { last })
    let text = try #require(last.errors.first).localizedDescription
    #expect(text.contains("boom") && text.count < 500)
  }

  @Test func aChainInWhichEachLinkFails_namesSomeRoots() async throws {
    var last: AsyncOperation = ResultOperation { throw TestError("first") }
    for index in 0..<400 {
      let both = [last, ResultOperation { throw TestError("\(index)") }]
      last = AsyncOperation()
      both ==> last
      last.addCondition(.noFailedDependencies)
    }
    _ = try? await queue.run(GroupOperation { last })
    let text = try #require(last.errors.first).localizedDescription
    #expect(text.count < 2000 && text.hasSuffix("; and others"))
  }

  @Test func aLongChainOfConditions_isNotNestedWithoutLimit() async {
    let operations = (0..<1000).map { index in
      AsyncBlockOperation { $0.finish(withErrors: index == 0 ? [TestError("root")] : []) }
    }
    for operation in operations.dropFirst() { operation.addCondition(.noFailedDependencies) }
    chain(operations)
    let aggregate = await #expect(throws: AggregateError.self) { try await queue.run(GroupOperation(operations)) }
    #expect(operations.allSatisfy { !$0.errors.isEmpty && $0.errors.allSatisfy { depth(of: $0) < 100 } })
    #expect(aggregate?.failures.count == 1000 && aggregate?.primary.error is TestError)
    #expect(operations[999].errors.first?.localizedDescription.contains("root") == true)
  }

  @Test func manyFailedDependencies_areNotAllNamed() async throws {
    let failed = (0..<500).map { failing("f\($0)") }
    let operation = unexecuted()
    operation.addCondition(.noFailedDependencies)
    failed ==> operation
    await #expect(throws: AggregateError.self) { try await queue.run(GroupOperation { operation }) }
    let text = try #require(operation.errors.first).localizedDescription
    #expect(text.contains("“f0”, “f1”") && text.contains("and 492 others") && text.count < 500)
  }

  @Test func errorOfTheCaller_keepsItsCauses() {
    let causes = (0..<100).map { TestError("\($0)") }
    let error = OperationError(.timedOut, "Late.", underlyingErrors: causes)
    #expect(error.underlyingErrors.count == 100)
    #expect(error.description == "Late. Cause: 0; 1; 2; 3; 4; 5; 6; 7; and others")
    let same: [any Error] = [TestError("x"), TestError("x"), CancellationError()]
    #expect(OperationError(.timedOut, "Late.", underlyingErrors: same).description == "Late. Cause: x")
  }
}
