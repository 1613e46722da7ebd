@testable import Operations

extension ExclusivityDomain {
  /// Whether the domain retains nothing.
  var isUnused: Bool {
    sharedRuns.withLock { $0.isEmpty }
      && KeyRegistry.withTable { table in !table.queueIndices.keys.contains { $0.domain === self } }
  }
}
