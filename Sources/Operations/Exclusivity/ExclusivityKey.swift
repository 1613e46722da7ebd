/// What operations exclude each other by: a name, or a type.
///
/// ```swift
/// extension ExclusivityKey {
///   static let camera: Self = "camera"        // spelt once
/// }
///
/// queue.addOperation(scan.exclusive(.camera))
/// queue.addOperation(download.exclusive("download \(url)"))
/// queue.addOperation(migration.exclusive(ExclusivityKey(Database.self)))
/// ```
///
/// A type is a key that no other module can happen to choose, too. It is another key than the one of its name.
public struct ExclusivityKey: Hashable, Sendable, ExpressibleByStringInterpolation, CustomStringConvertible {
  private enum Identity: Hashable {
    case name(String)
    case type(ObjectIdentifier, name: String)
  }

  private let identity: Identity

  /// A key by name. Two of the same name are one.
  public init(_ name: String) { identity = .name(name) }

  /// A key by type, which is never the same as one by name.
  public init<T>(_ type: T.Type) { identity = .type(ObjectIdentifier(type), name: String(describing: type)) }

  public init(stringLiteral name: String) { self.init(name) }

  /// The name, or the type's.
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
