import Foundation
import Operations
import OperationsTestSupport
import Testing

private final class Upload: AsyncOperation, @unchecked Sendable {
  init(_ page: Int) {}
}

/// The code of the comments in Sources/Operations/Dependencies.
struct DependenciesComments {
  @Test func aChain() async {
    let (queue, pages) = (OperationQueue(), [1, 2, 3])
    queue.addOperations(chain(pages.map { Upload($0) }))
    await queue.finished()
  }
}
