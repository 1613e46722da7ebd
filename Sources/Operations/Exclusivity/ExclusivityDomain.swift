import Foundation

/// Where keys mean something: operations exclude each other if they name a key in the same domain.
///
/// ``shared`` is enough for most programs. A library, or a test, makes a domain of its own.
///
/// A domain holds no operation, and nothing for a key that is not in use, except when operations under a throttled key
/// began: until their interval is over, and a while longer.
public final class ExclusivityDomain: Sendable {
  /// The domain of operations that name none.
  public static let shared = ExclusivityDomain()

  /// The runs that callers share, by their keys.
  let sharedRuns = Locked<[ExclusivityKey: any AnyObject & Sendable]>([:])

  /// Creates an independent domain: a key in it has nothing to do with the same key in another.
  public init() {}

  /// The names of the operations that hold the key, in the order in which they requested it: for debugging.
  ///
  /// Members of a group that use the key of their group are among them, after the group.
  public func holders(of key: ExclusivityKey) -> [String] { names(of: key) { $0 == .holding } }

  /// The names of the operations that wait for the key, in the order in which they requested it: for debugging.
  ///
  /// An operation whose turn has come, and which its queue has yet to start, still waits.
  public func waiting(for key: ExclusivityKey) -> [String] { names(of: key) { $0 != .holding } }

  private func names(of key: ExclusivityKey, where isIncluded: (KeyRing.Table.State) -> Bool) -> [String] {
    let claimants = KeyRing.look { table in
      table.tickets(of: key, in: self).compactMap { table.entries[$0] }.filter { isIncluded($0.state) }.map(\.claimant)
    }
    return claimants.compactMap { $0.request?.operation }.filter { !$0.isFinished }.map(\.displayName)
  }

  /// Whether nothing is kept.
  var isUnused: Bool {
    sharedRuns.withLock { $0.isEmpty }
      && KeyRing.look { table in !table.lineIndices.keys.contains { $0.domain === self } }
  }
}
