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

/// A namespace of exclusivity keys. Operations exclude each other only if they name a key in the same domain.
///
/// Most programs need only ``shared``. A library or a test can create an independent domain.
///
/// A domain retains no operation. When a key is no longer in use, the domain releases all data about the key. A
/// throttled key is in use until the intervals after all starts have passed.
public final class ExclusivityDomain: @unchecked Sendable {
  /// The domain that keys belong to by default.
  public static let shared = ExclusivityDomain()

  let sharedRuns = Locked<[ExclusivityKey: any AnyObject & Sendable]>([:])

  /// The limits that ``setLimit(_:for:)`` has set. Guarded by the lock of the registry.
  private(set) var limits: [ExclusivityKey: Int] = [:]

  /// The time in milliseconds for which others wait behind an operation that has been called.
  let patience: Int

  /// Creates an independent domain.
  public convenience init() { self.init(patience: 20) }

  init(patience: Int) { self.patience = patience }

  /// Returns the names of the operations that hold the key, in the order of their requests. For debugging.
  ///
  /// A group that holds the key comes before its members that use the key.
  public func holders(of key: ExclusivityKey) -> [String] { names(of: key, areHolding: true) }

  /// Returns the names of the operations that wait for the key, in the order of their requests. For debugging.
  ///
  /// An operation still waits if it is ready but its queue has not started it.
  public func waiting(for key: ExclusivityKey) -> [String] { names(of: key, areHolding: false) }

  /// Limits the holders of a key from now on, whatever their claims, so that their weights add up to at most `limit`.
  ///
  /// The smallest limit counts, of this one and those of the claims. Operations that hold the key keep it. A claim that
  /// weighs more than the limit waits, so with a limit of 0 none begins to hold the key, apart from what holders run.
  ///
  /// - Parameters:
  ///   - limit: The limit, which is 0 or greater. Nil removes a limit that was set before.
  ///   - key: The key.
  public func setLimit(_ limit: Int?, for key: ExclusivityKey) {
    if let limit, limit < 0 {
      misuse(
        "The key \(key.quoted) cannot be limited to \(limit) operations. Set a limit of 0 or more, or nil for none."
      )
    }
    KeyRegistry.change { table, effects in
      if let index = limits.index(forKey: key) { effects.append(.release(limits.remove(at: index))) }
      limits[key] = limit
      table.limitDidChange(for: key, in: self, &effects)
    }
  }

  /// Lets no operation begin to hold a key for `duration`, for example after a response with the status 429.
  ///
  /// Operations that hold the key go on, and so does what they run inside. A retry that backs off has given the key back,
  /// and waits. If the key is paused already, the pause that ends later counts.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - duration: The length of the pause. Zero or less has no effect.
  ///   - clock: The clock that measures the pause.
  public func pause(_ key: ExclusivityKey, for duration: Duration, clock: any Clock<Duration> = ContinuousClock()) {
    KeyRegistry.pause(KeyUse.ID(domain: self, key: key), for: duration, on: clock)
  }

  private func names(of key: ExclusivityKey, areHolding: Bool) -> [String] {
    let claimants = KeyRegistry.withTable { $0.claimants(of: key, in: self, areHolding: areHolding) }
    return claimants.compactMap(\.name)
  }
}
