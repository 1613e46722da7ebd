import Foundation

/// A Progress that cancels its operation before `cancel()` returns. On Linux Foundation calls the handler later, on
/// another thread.
class CancellingProgress: Progress, @unchecked Sendable {
  private struct Owner {
    weak var operation: AsyncOperation?
  }

  private let owner: Locked<Owner>

  init(of operation: AsyncOperation) {
    owner = Locked(Owner(operation: operation))
    super.init(parent: nil, userInfo: nil)
    isCancellable = true
    // For where a parent that is cancelled does not go through `cancel()`.
    cancellationHandler = { [weak operation] in operation?.cancel() }
  }

  final var operation: AsyncOperation? { owner.withLock { $0.operation } }

  override func cancel() {
    super.cancel()
    operation?.cancel()
  }
}
