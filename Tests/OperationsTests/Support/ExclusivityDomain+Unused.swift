@testable import Operations

extension ExclusivityDomain {
  /// Whether the domain retains nothing.
  var isUnused: Bool {
    sharedRuns.withLock { $0.isEmpty }
      && KeyRegistry.withTable { table in !table.useIndices.keys.contains { $0.domain === self } }
  }
}

extension KeyTable {
  /// Whether the table is empty and has no spare capacity.
  var isEmpty: Bool { entries.indices.isEmpty && uses.indices.isEmpty && useIndices.isEmpty && !useIndices.hasMuchRoom }
}

extension KeyState {
  /// Whether the claimant has been called, and others may be called in its place.
  var isPassed: Bool { self == .called(until: nil) }

  var isCalled: Bool { if case .called = self { true } else { false } }
}
