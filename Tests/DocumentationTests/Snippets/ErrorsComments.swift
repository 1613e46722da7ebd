import Foundation
import Operations
import OperationsTestSupport
import Testing

/// The code of the comments in Sources/Operations/Errors.
@Suite(.timeLimit(.minutes(5)))
struct ErrorsComments {
  private let queue = OperationQueue()
  private let journal = Journal<String>()

  private func retryLater() { journal.write("later") }

  @Test func catchingACode() async throws {
    let operation = AsyncBlockOperation { _ in }
    operation.timeout = .milliseconds(1)
    do {
      try await queue.run(operation)
    } catch OperationError.Code.timedOut {
      retryLater()
    }
    #expect(journal.entries == ["later"])
  }
}
