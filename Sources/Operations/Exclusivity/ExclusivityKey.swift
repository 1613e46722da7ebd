import Foundation

/// A name or a type by which operations exclude each other.
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
/// A type is a key that no other module can use by accident. The key differs from a key with the name of the type.
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

/// The effect of requesting a key that is held or waited for.
public enum ExclusivityPolicy: CaseIterable, Sendable {
  /// The operation waits. Keys are granted in the order of the requests.
  case wait
  /// The operation cancels all earlier holders and waiters, then waits for the holders to finish. A member of a group
  /// that holds the key cancels and waits for other members only.
  case replace
  /// The operation is cancelled with ``OperationError/Code/excluded`` and finishes without executing. The message of
  /// the error names the key and the operation that has it.
  case drop
}

/// A namespace of exclusivity keys. Operations exclude each other only if they name a key in the same domain.
///
/// Most programs need only ``shared``. A library or a test can create an independent domain.
///
/// A domain retains no operation. When a key is no longer in use, the domain releases all data about the key, except
/// for the start times of a throttled key. It releases these some time after the interval.
public final class ExclusivityDomain: Sendable {
  /// The domain that keys belong to by default.
  public static let shared = ExclusivityDomain()

  /// The shared runs in flight, by key.
  let sharedRuns = Locked<[ExclusivityKey: any AnyObject & Sendable]>([:])

  /// Creates an independent domain.
  public init() {}

  /// Returns the names of the operations that hold the key, in the order of their requests. For debugging.
  ///
  /// A group that holds the key comes before its members that use the key.
  public func holders(of key: ExclusivityKey) -> [String] { names(of: key) { $0 == .holding } }

  /// Returns the names of the operations that wait for the key, in the order of their requests. For debugging.
  ///
  /// An operation still waits if the key is reserved for it but its queue has not started it.
  public func waiting(for key: ExclusivityKey) -> [String] { names(of: key) { $0 != .holding } }

  private func names(of key: ExclusivityKey, where isIncluded: (KeyRegistry.Table.State) -> Bool) -> [String] {
    let claimants = KeyRegistry.withTable { table in
      table.tickets(of: key, in: self).compactMap { table.entries[$0] }.filter { isIncluded($0.state) }.map(\.claimant)
    }
    return claimants.compactMap(\.operation).filter { !$0.isFinished }.map(\.displayName)
  }
}
