import Foundation
import Operations
import OperationsTestSupport
import Testing

/// Errors of operations that fail because others failed: they grow with each of them, but not beyond all bounds.
@Suite(.timeLimit(.minutes(5)))
struct RootCausesTests {
  private let queue = OperationQueue()

  private func depth(of error: any Error) -> Int {
    var depth = 1
    var error = error
    while let cause = (error as? OperationError)?.underlyingErrors.first { (error, depth) = (cause, depth + 1) }
    return depth
  }

  @Test func pairsOfPairsOfValues() async {
    var last: ResultOperation<Int> = ResultOperation { throw TestError("boom") }
    for _ in 0..<40 { last = zip(last.map { $0 }, last.map { $0 }).map { $0.0 + $0.1 } }
    _ = try? await queue.run(GroupOperation { last })
    let text = last.errors[0].localizedDescription
    #expect(text.contains("boom") && text.count < 500)
  }

  @Test func aChainOfWhichEachLinkFails() async {
    var last: ResultOperation<Int> = ResultOperation { throw TestError("first") }
    for index in 0..<400 {
      last = zip(last, ResultOperation<Int> { throw TestError("\(index)") }).map { $0.0 + $0.1 }
    }
    _ = try? await queue.run(GroupOperation { last })
    let text = last.errors[0].localizedDescription
    #expect(text.count < 2000 && text.hasSuffix("; and others"))
  }

  @Test func layersOfConditions() async {
    var layer = (0..<2).map { index in AsyncBlockOperation { $0.finish(with: TestError("root \(index)")) } }
    let group = GroupOperation()
    group.addOperations(layer)
    for _ in 0..<40 {
      let next = (0..<2).map { _ in AsyncBlockOperation { _ in Issue.record("executed") } }
      for operation in next { operation.addCondition(.noFailedDependencies) }
      layer ==> next
      group.addOperations(next)
      layer = next
    }
    let aggregate = await #expect(throws: AggregateError.self) { try await queue.run(group) }
    let text = layer[0].errors[0].localizedDescription
    #expect(text.contains("root 0") && text.contains("root 1") && text.count < 1000)
    #expect(aggregate?.primary.error is TestError && aggregate?.failures.count == 82)
  }

  @Test func aLongChainOfConditionsDoesNotNestForEver() async {
    let operations = (0..<1000).map { index in
      AsyncBlockOperation { $0.finish(withErrors: index == 0 ? [TestError("root")] : []) }
    }
    for (first, second) in zip(operations, operations.dropFirst()) {
      second.addCondition(.noFailedDependencies)
      first ==> second
    }
    let aggregate = await #expect(throws: AggregateError.self) { try await queue.run(GroupOperation(operations)) }
    #expect(operations.allSatisfy { depth(of: $0.errors[0]) < 100 })
    #expect(aggregate?.failures.count == 1000 && aggregate?.primary.error is TestError)
    #expect(operations[999].errors[0].localizedDescription.contains("root"))
  }

  @Test func manyFailedDependenciesAreNotAllNamed() async {
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

  @Test func whatTheUserMadeIsLeftAsItIs() {
    let causes = (0..<100).map { TestError("\($0)") }
    let error = OperationError(.timedOut, "Late.", underlyingErrors: causes)
    #expect(error.underlyingErrors.count == 100)
    #expect(error.description == "Late. Cause: 0; 1; 2; 3; 4; 5; 6; 7; and others")
    let same: [any Error] = [TestError("x"), TestError("x"), CancellationError()]
    #expect(OperationError(.timedOut, "Late.", underlyingErrors: same).description == "Late. Cause: x")
  }
}
