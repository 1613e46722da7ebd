/// Says what an inner run runs inside of.
final class InnerSupervisor: OperationSupervisor, @unchecked Sendable {
  private struct Outer {
    weak var operation: AsyncOperation?
  }

  private let outer: Locked<Outer>

  init(of operation: AsyncOperation) { outer = Locked(Outer(operation: operation)) }

  override var supervisedGroup: AsyncOperation? { outer.withLock { $0.operation } }
}
