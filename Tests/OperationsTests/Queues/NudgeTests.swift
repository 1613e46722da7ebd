import Foundation
import OperationsTestSupport
import Testing

@testable import Operations

/// The wake-up that Foundation on Linux may lose is too rare to be waited for (7 in 276,000): these tests see to it
/// that the verbs of the toolkit make Foundation look at the operation once more when it is in the queue.
struct NudgeTests {
  /// Opens the gate of an operation between Foundation's enqueueing and the end of the verb, and forgets that
  /// Foundation has ever asked.
  private final class ForgetfulQueue: OperationQueue, @unchecked Sendable {
    override func addOperation(_ operation: Operation) {
      super.addOperation(operation)
      forget(operation)
    }

    override func addOperations(_ operations: [Operation], waitUntilFinished: Bool) {
      super.addOperations(operations, waitUntilFinished: waitUntilFinished)
      for operation in operations { forget(operation) }
    }

    private func forget(_ operation: Operation) {
      guard let operation = operation as? AsyncOperation else { return }
      let action = operation.core.withLock { $0.ledger.countDown() }
      if case .becomeReady(let gate?) = action { gate.start() }
      operation.core.withLock { core in
        core.ledger = DependencyLedger()
        guard case .becomeReady = action else { return }
        _ = core.ledger.add(.own(operation))
        _ = core.ledger.makeGate()
        _ = core.ledger.countDown()
        _ = core.ledger.gateDidOpen()
      }
    }
  }

  private func hasBeenAskedAgain(_ operation: AsyncOperation) -> Bool {
    operation.core.withLock { $0.ledger.isWatched }
  }

  @Test func anOperationThatWaitedIsLookedAtOnceMore() async {
    let queue = ForgetfulQueue()
    queue.isSuspended = true
    let operations = (0..<2).map { _ in AsyncOperation() }
    [AsyncOperation()] ==> operations
    queue.addOperation(operations[0])
    queue.addOperations([operations[1]])
    #expect(operations.map(hasBeenAskedAgain) == [true, true])
    queue.isSuspended = false
    await queue.finished()
  }

  @Test func anOperationThatIsReadyIsNot() async {
    let queue = ForgetfulQueue()
    queue.isSuspended = true
    let operation = AsyncOperation()
    queue.addOperation(operation)
    #expect(!hasBeenAskedAgain(operation), "it would cost every operation for nothing")
    queue.isSuspended = false
    await queue.finished()
  }
}
