import Foundation

/// The names of operations in messages.
extension Operation {
  /// The name, or the name of the type for an operation without a name.
  var displayName: String {
    if let name, !name.isEmpty { return name }
    return String(describing: type(of: self))
  }

  /// The name in quotation marks, for messages.
  var quotedName: String { "“\(displayName)”" }
}

extension Collection where Element: Operation {
  /// The names of the first eight operations, and the number of further ones.
  var quotedNames: String {
    let names = prefix(8).map(\.quotedName).joined(separator: ", ")
    return count > 8 ? names + " and \((count - 8).others)" : names
  }
}

extension Int {
  /// The number of others that a message does not name, such as “1 other”.
  var others: String { self == 1 ? "1 other" : "\(self) others" }
}
