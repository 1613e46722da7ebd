import Foundation

/// A key by which operations exclude each other: a name or a type.
///
/// ```swift
/// extension ExclusivityKey {
///   static let camera: Self = "camera"        // spelled once
/// }
///
/// queue.addOperation(scan.exclusive(.camera))
/// queue.addOperation(download.exclusive("download \(url)"))
/// queue.addOperation(migration.exclusive(ExclusivityKey(Database.self)))
/// ```
///
/// A type is a key that no other module can choose by accident. It differs from the key with the type's name.
public struct ExclusivityKey: Hashable, Sendable, ExpressibleByStringInterpolation, CustomStringConvertible {
  private enum Identity: Hashable {
    case name(String)
    case type(ObjectIdentifier, name: String)
  }

  private let identity: Identity

  /// Creates a key from a name. Keys with the same name are equal.
  public init(_ name: String) { identity = .name(name) }

  /// Creates a key from a type. It never equals a key made from a name.
  public init<T>(_ type: T.Type) { identity = .type(ObjectIdentifier(type), name: String(describing: type)) }

  public init(stringLiteral name: String) { self.init(name) }

  /// The name of the key, or of its type.
  public var description: String {
    switch identity {
    case .name(let name), .type(_, let name): name
    }
  }

  var quoted: String { "“\(description)”" }
}

extension [ExclusivityKey] {
  /// “a”, “b”
  var quoted: String { map(\.quoted).joined(separator: ", ") }
}

/// What happens when an operation requests a key that is held or waited for.
public enum ExclusivityPolicy: CaseIterable, Sendable {
  /// The operation waits: first come, first served.
  case wait
  /// The operation cancels all holders and waiters before it, then waits for the holders to finish. A member of a group that
  /// holds the key cancels and waits only for other members.
  case replace
  /// The operation finishes without executing. It is cancelled with ``OperationError/Code/excluded``, whose message names the
  /// key and the operation that has it.
  case drop
}

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
