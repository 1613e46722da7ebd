@testable import Operations

extension ExclusivityDomain {
  /// Whether the domain retains nothing.
  var isUnused: Bool {
    sharedRuns.withLock { $0.isEmpty }
      && KeyRegistry.withTable { table in !table.queueIndices.keys.contains { $0.domain === self } }
  }
}

extension KeyTable {
  /// Whether the table is empty and has no spare capacity.
  var isEmpty: Bool { entries.isEmpty && queueIndices.isEmpty && !entries.hasMuchRoom && !queueIndices.hasMuchRoom }
}
