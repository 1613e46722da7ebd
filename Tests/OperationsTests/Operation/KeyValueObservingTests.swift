#if canImport(ObjectiveC)
import Foundation
import ObjectiveC
import Operations
import OperationsTestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct KeyValueObservingTests {
  private let journal = Journal<String>()

  private final class Observed: AsyncOperation, @unchecked Sendable {
    let begun = Gate()
    private let journal: Journal<String>

    init(_ journal: Journal<String>) { self.journal = journal }

    override func execute() { begun.open() }
    override func didCancel() { journal.write("didCancel") }
  }

  /// Observes a property as that of an `Operation`, because only those of Foundation have the names of its key paths.
  private func observe(
    _ operation: Operation,
    _ name: String,
    _ property: any KeyPath<Operation, Bool> & Sendable
  ) -> NSKeyValueObservation {
    operation.observe(property, options: []) { [journal] operation, _ in
      journal.write("\(name) \(operation[keyPath: property])")
    }
  }

  @Test(arguments: [false, true]) func observersOfTheFourProperties(isCancelled: Bool) async {
    let operation = Observed(journal)
    let observations = [
      observe(operation, "isReady", \.isReady), observe(operation, "isExecuting", \.isExecuting),
      observe(operation, "isFinished", \.isFinished), observe(operation, "isCancelled", \.isCancelled),
    ]
    let dependency = AsyncOperation()
    dependency ==> operation
    let queue = OperationQueue()
    queue.addOperations([operation, dependency])
    await operation.begun.opened()
    if isCancelled { operation.cancel() }
    operation.finish()
    await operation.finished()
    let entries = journal.entries
    #expect(entries.contains("isReady true"))
    #expect(entries.count { $0 == "isFinished true" } == 1 && !entries.contains("isExecuting true"))
    let cancellation = entries.filter { $0 == "didCancel" || $0 == "isCancelled true" }
    #expect(cancellation == (isCancelled ? ["didCancel", "isCancelled true"] : []))
    for observation in observations { observation.invalidate() }
  }
}
#endif
