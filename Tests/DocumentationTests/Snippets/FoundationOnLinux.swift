import Foundation
import Operations
import OperationsTestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct FoundationOnLinuxSnippets {
  private final class Queue: OperationQueue, @unchecked Sendable {
    let claimed = Journal<Bool>()

    /// The package's methods have claimed an operation before they call these.
    override func addOperation(_ operation: Operation) {
      claimed.write(FoundationOnLinuxSnippets.isClaimed(operation))
      super.addOperation(operation)
    }

    override func addOperations(_ operations: [Operation], waitUntilFinished wait: Bool) {
      for operation in operations { claimed.write(FoundationOnLinuxSnippets.isClaimed(operation)) }
      super.addOperations(operations, waitUntilFinished: wait)
    }
  }

  /// A group does not take in what is known to be in a queue.
  private static func isClaimed(_ operation: Operation) -> Bool {
    let last = AsyncOperation()
    operation ==> last
    return GroupOperation { last }.operations.count == 1
  }

  @Test func theVerbIsPickedByTheDeclaration() async {
    typealias Download = AsyncOperation
    let (download, upload): (Download, Download) = (AsyncOperation(), AsyncOperation())
    let (first, second): (Operation, Operation) = (AsyncOperation(), AsyncOperation())
    let queue = Queue()
    queue.isSuspended = true
    queue.addOperation(download)  // declared as a Download: the toolkit's verb
    queue.addOperation(upload as Operation)  // Foundation's own
    queue.addOperations([first, second])  // the toolkit's, whatever these are declared as
    #expect(queue.claimed.entries == [true, false, true, true])
    queue.isSuspended = false
    await queue.finished()
  }

  private struct Client: Sendable {
    func ask(_ completion: @escaping @Sendable (Result<Int, any Error>) -> Void) {
      DispatchQueue.global().async { completion(.success(42)) }
    }
  }

  @Test func waitingWithoutAThread() async throws {
    let client = Client()
    let answer = TaskOperation {
      try await withCheckedThrowingContinuation { continuation in
        client.ask { result in continuation.resume(with: result) }
      }
    }
    #expect(try await OperationQueue().run(answer) == 42)
  }

  @Test func blockingInAQueueOfItsOwn() async throws {
    let file = URL(filePath: #filePath)
    let files = OperationQueue()
    files.maxConcurrentOperationCount = 4
    let text = try await files.run(ResultOperation { try String(contentsOf: file, encoding: .utf8) })
    #expect(text.hasPrefix("import Foundation"))
  }

  @Test func anOperationInsteadOfABarrier() async {
    let order = Journal<Int>()
    func note(_ number: Int) -> ResultOperation<Void> { ResultOperation { order.write(number) } }
    let (first, second, compact, third, fourth) = (note(1), note(1), note(2), note(3), note(3))
    let queue = OperationQueue()
    [first, second] ==> compact ==> [third, fourth]
    queue.addOperations([first, second, compact, third, fourth])
    await queue.finished()
    #expect(order.entries == [1, 1, 2, 3, 3])
  }
}
