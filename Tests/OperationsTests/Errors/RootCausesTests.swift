import Foundation
import Operations
import OperationsTestSupport
import Testing

/// The errors of operations that fail because others failed have a limited size.
@Suite(.timeLimit(.minutes(5)))
struct RootCausesTests {
  private let queue = OperationQueue()

  private func depth(of error: any Error) -> Int {
    Array(sequence(first: error) { ($0 as? OperationError)?.underlyingErrors.first }).count
  }

  @Test func pairsOfPairsOfValues_nameOneRoot() async {
    var last: ResultOperation<Int> = ResultOperation { throw TestError("boom") }
    for _ in 0..<40 { last = zip(last.map { $0 }, last.map { $0 }).map { $0.0 + $0.1 } }
    _ = try? await queue.run(GroupOperation { last })
    let text = last.errors[0].localizedDescription
    #expect(text.contains("boom") && text.count < 500)
  }

  @Test func aChainInWhichEachLinkFails_namesSomeRoots() async {
    var last: ResultOperation<Int> = ResultOperation { throw TestError("first") }
    for index in 0..<400 {
      last = zip(last, ResultOperation<Int> { throw TestError("\(index)") }).map { $0.0 + $0.1 }
    }
    _ = try? await queue.run(GroupOperation { last })
    let text = last.errors[0].localizedDescription
    #expect(text.count < 2000 && text.hasSuffix("; and others"))
  }

  @Test func aLongChainOfConditions_isNotNestedWithoutLimit() async {
    let operations = (0..<1000).map { index in
      AsyncBlockOperation { $0.finish(withErrors: index == 0 ? [TestError("root")] : []) }
    }
    for operation in operations.dropFirst() { operation.addCondition(.noFailedDependencies) }
    chain(operations)
    let aggregate = await #expect(throws: AggregateError.self) { try await queue.run(GroupOperation(operations)) }
    #expect(operations.allSatisfy { depth(of: $0.errors[0]) < 100 })
    #expect(aggregate?.failures.count == 1000 && aggregate?.primary.error is TestError)
    #expect(operations[999].errors[0].localizedDescription.contains("root"))
  }

  @Test func manyFailedDependencies_areNotAllNamed() async {
    let failed = (0..<500).map { index in
      AsyncBlockOperation { $0.finish(with: TestError("\(index)")) }.named("f\(index)")
    }
    let operation = AsyncBlockOperation { _ in Issue.record("executed") }
    operation.addCondition(.noFailedDependencies)
    failed ==> operation
    await #expect(throws: AggregateError.self) { try await queue.run(GroupOperation { operation }) }
    let text = operation.errors[0].localizedDescription
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
