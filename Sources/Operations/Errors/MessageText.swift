public import Foundation

extension Operation {
  /// Sets the name and returns the operation: `let page = Download(url).named("page 3")`.
  ///
  /// Errors, reports and graphs use the name of an operation. If it has none, they use the file and line of its closure, such
  /// as “Import.swift, line 24”, or the name of its type.
  @discardableResult
  public func named(_ name: String) -> Self {
    self.name = name
    return self
  }

  /// The name, or “Import.swift, line 24” for a closure. Otherwise the type: “Upload”, or “task operation” of the package.
  var displayName: String {
    let operation = represented
    if let name = operation.name, !name.isEmpty { return name }
    let (text, isOfThisPackage) = operation.typeName
    return (isOfThisPackage ? operation.closureOrigin?.name : nil) ?? text
  }

  /// Names an operation that has neither a name nor a type that says what it does.
  func nameIfAnonymous(_ name: @autoclosure () -> String) {
    if self.name?.isEmpty != false, typeName.isOfThisPackage { self.name = name() }
  }

  var quotedName: String { "“\(displayName)”" }

  private static let typeNames = Locked<[ObjectIdentifier: (text: String, isOfThisPackage: Bool)]>([:])

  /// Computed once for each type.
  private var typeName: (text: String, isOfThisPackage: Bool) {
    let type = type(of: self)
    if let name = Self.typeNames.withLock({ $0[ObjectIdentifier(type)] }) { return name }
    let name = String(describing: type).prefix { $0 != "<" }
    let isOwn = String(reflecting: type).hasPrefix("Operations.")
    let words = name.reduce("") { $0 + ($1.isUppercase && !$0.isEmpty ? " " : "") + $1.lowercased() }
    let result = (isOwn ? words : String(name), isOwn)
    Self.typeNames.withLock { $0[ObjectIdentifier(type)] = result }
    return result
  }
}

extension Collection {
  /// The first elements as text, such as “a, b and 2 others”.
  func listed(_ text: (Element) -> String) -> String {
    let texts = prefix(8).map(text).joined(separator: ", ")
    return count > 8 ? texts + " and \((count - 8).others)" : texts
  }
}

extension Collection where Element: Operation {
  var quotedNames: String { listed(\.quotedName) }
}

extension Int {
  var others: String { self == 1 ? "1 other" : "\(self) others" }
}

extension Duration {
  /// The exact duration, such as “10 seconds”, “0.5 seconds” or “1 second”.
  package var text: String {
    self == .seconds(1) ? "1 second" : description.replacingOccurrences(of: ".0 seconds", with: " seconds")
  }

  /// The measured duration, rounded, with at most three digits and a unit: 12 µs, 3.4 ms, 2.5 s, 14 min.
  var reading: String {
    // `components` would trap if the seconds exceeded an `Int64`.
    let seconds = self / .seconds(1)
    switch abs(seconds) {
    case ..<0.000_000_5: return "0 s"
    case ..<0.000_999_5: return "\(Int((seconds * 1e6).rounded())) µs"
    case ..<0.999_5: return Self.reading(seconds * 1e3, "ms")
    case ..<119.5: return Self.reading(seconds, "s")
    case ..<7_170: return "\(Int((seconds / 60).rounded())) min"
    default: return "\(Int64((seconds / 3600).rounded())) h"
    }
  }

  private static func reading(_ value: Double, _ unit: String) -> String {
    if abs(value) >= 99.5 { return "\(Int(value.rounded())) \(unit)" }
    let tenths = Int((value * 10).rounded())
    return tenths.isMultiple(of: 10) ? "\(tenths / 10) \(unit)" : "\(tenths / 10).\(abs(tenths % 10)) \(unit)"
  }
}
