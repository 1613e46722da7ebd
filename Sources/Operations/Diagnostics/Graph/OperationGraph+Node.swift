extension OperationGraph {
  /// An operation as it was when the graph was taken.
  public struct Node: Sendable, Hashable, Identifiable {
    /// Where an operation is in its life, and how it ended.
    public enum State: String, Sendable, Hashable, Codable, CaseIterable {
      /// Not begun.
      case pending
      /// Begun, and not finished.
      case executing
      /// Finished, without errors.
      case finished
      /// Finished, with errors.
      case failed
      /// Finished or not.
      case cancelled
    }

    /// Its index in ``OperationGraph/nodes``.
    public let id: Int
    /// The operation's, or its type's if it has none.
    public let name: String
    /// As it was when the graph was taken.
    public let state: State
    /// Whether it is an operation that others run inside of: a group, or one that tries or follows others.
    public let isGroup: Bool
    /// What it runs inside of.
    public internal(set) var group: Int?
    /// What it waits for, each once.
    public internal(set) var dependencies: [Int] = []
    /// How long it executed, as far as that is known: see ``OperationGraph/withDurations(_:)``.
    public internal(set) var duration: Duration?
  }
}
