import Foundation

/// A name, a type or a value by which operations exclude each other.
///
/// ```swift
/// extension ExclusivityKey {
///   static let camera: Self = "camera"        // spelled once
/// }
///
/// queue.addOperation(scan.exclusive(.camera))
/// queue.addOperation(download.exclusive("download \(url)"))
/// queue.addOperation(migration.exclusive(ExclusivityKey(Database.self)))
/// queue.addOperation(save.exclusive(ExclusivityKey(document.id)))
/// ```
///
/// A type is a key that no other module can use by accident. The key differs from a key with the name of the type.
/// Values of different types are different keys. Objects are one key if they are equal.
public struct ExclusivityKey: Hashable, @unchecked Sendable, ExpressibleByStringInterpolation, CustomStringConvertible {
  private enum Storage: @unchecked Sendable {
    case name(String)
    /// Made from a type, or from a `Sendable` value and its type, unless it is an object.
    indirect case other(description: String, type: ObjectIdentifier?, value: AnyHashable?)
  }

  private let storage: Storage

  private init(_ storage: Storage) { self.storage = storage }

  /// Creates a key from a name. Keys with the same name are equal.
  public init(_ name: String) { storage = .name(name) }

  /// Creates a key from a type. It never equals a key made from a name.
  public init<T>(_ type: T.Type) {
    storage = .other(description: String(describing: type), type: ObjectIdentifier(type), value: nil)
  }

  /// Creates a key from a value, such as the identifier of a document. A string makes a key with that name.
  ///
  /// The `==` and `hash(into:)` of the value are called under a lock of the package, and must not use operations.
  @_disfavoredOverload
  public init<Key: Hashable & Sendable>(_ value: Key) {
    if let name = value as? String {
      self.init(name)
    } else {
      // The static type of an object may be a superclass.
      let type = Key.self is AnyObject.Type ? nil : ObjectIdentifier(Key.self)
      self.init(.other(description: String(describing: value), type: type, value: value))
    }
  }

  public init(stringLiteral name: String) { self.init(name) }

  /// Values that are equal make equal keys, whatever their descriptions.
  public static func == (left: Self, right: Self) -> Bool {
    switch (left.storage, right.storage) {
    case (.name(let left), .name(let right)): left == right
    case (.other(_, let type, let value), .other(_, let otherType, let otherValue)):
      type == otherType && value == otherValue
    case (.name, .other), (.other, .name): false
    }
  }

  public func hash(into hasher: inout Hasher) {
    switch storage {
    case .name(let name): hasher.combine(name)
    case .other(_, let type, nil): hasher.combine(type)
    case .other(_, _, let value?): hasher.combine(value)
    }
  }

  /// The name of the key or of its type, or the description of its value.
  public var description: String {
    switch storage {
    case .name(let name): name
    case .other(let description, _, _): description
    }
  }

  var quoted: String { "“\(self)”" }

  var hasValue: Bool { if case .other(_, _, .some) = storage { true } else { false } }
}

extension [ExclusivityKey] {
  var quoted: String { map(\.quoted).joined(separator: ", ") }
}

/// The effect of requesting a key that is held or waited for. It takes place once, when the operation first arrives at
/// the wait queues of its keys. An operation that backs off, or that its queue is about to start, counts as a waiter. What
/// a policy cancels is no failure of its group.
public enum ExclusivityPolicy: CaseIterable, Sendable {
  /// The operation waits its turn: see <doc:MutualExclusion>.
  case wait
  /// The operation cancels all earlier holders and waiters with ``OperationError/Code/replaced``, then waits for the
  /// holders to finish. A replaced attempt of a ``RetryOperation`` has failed with this error. A member of a group
  /// that holds the key cancels and waits for other members only. Cancelling a holder does not finish it: its work must
  /// respond to ``AsyncOperation/didCancel()``, which is called on the thread that requests the key.
  case replace
  /// The operation cancels all earlier waiters, but no holder, on the thread that requests the key, and waits. One
  /// operation runs, and the newest one waits. A task whose wait ends in this way receives a `CancellationError`.
  case latest
  /// The operation is cancelled with ``OperationError/Code/excluded`` and finishes without executing. The message of
  /// the error names the key and the operation that has it. In a queue, an operation that waits for nothing else
  /// finishes before the package's adding method returns.
  case drop
}
