import Foundation

/// A namespace of exclusivity keys. Operations exclude each other only if they name a key in the same domain.
///
/// Most programs need only ``shared``. A library or a test creates a domain of its own.
///
/// A domain retains no operation. For a key that is not in use it retains nothing, except the start times of a throttled key
/// until some time after its interval.
public final class ExclusivityDomain: Sendable {
  /// The domain that keys belong to by default.
  public static let shared = ExclusivityDomain()

  /// The runs in flight that callers share.
  let sharedRuns = Locked<[ExclusivityKey: any AnyObject & Sendable]>([:])

  /// Creates an independent domain.
  public init() {}

  /// Returns the names of the operations that hold the key, in the order of their requests. For debugging.
  ///
  /// The members that use the key of their group follow the group.
  public func holders(of key: ExclusivityKey) -> [String] { names(of: key) { $0 == .holding } }

  /// Returns the names of the operations that wait for the key, in the order of their requests. For debugging.
  ///
  /// An operation that has been permitted to start, but was not started by its queue, still waits.
  public func waiting(for key: ExclusivityKey) -> [String] { names(of: key) { $0 != .holding } }

  private func names(of key: ExclusivityKey, where isIncluded: (KeyRegistry.Table.State) -> Bool) -> [String] {
    let claimants = KeyRegistry.read { table in
      table.tickets(of: key, in: self).compactMap { table.entries[$0] }.filter { isIncluded($0.state) }.map(\.claimant)
    }
    return claimants.compactMap(\.operation).filter { !$0.isFinished }.map(\.displayName)
  }

  /// Whether the domain retains nothing.
  var isUnused: Bool {
    sharedRuns.withLock { $0.isEmpty }
      && KeyRegistry.read { table in !table.queueIndices.keys.contains { $0.domain === self } }
  }
}
