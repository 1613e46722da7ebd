/// Traps because of a programmer's error. `preconditionFailure` would drop the message in a release build, and
/// `fatalError` truncates it at a NUL, which the name of an operation may contain.
package func misuse(_ message: String, file: StaticString = #fileID, line: UInt = #line) -> Never {
  let scalars = message.unicodeScalars.map { $0 == "\0" ? "\u{2400}" : $0 }
  fatalError(String(String.UnicodeScalarView(scalars)), file: file, line: line)
}

/// The source location at which an event was scheduled, a closure became an operation, or a property was declared.
public struct EventOrigin: Sendable, CustomStringConvertible {
  /// The module and file, as in `#fileID`.
  public let file: StaticString
  private let number: UInt32

  /// The line, starting at 1.
  public var line: UInt { UInt(number) }

  /// Creates an origin, by default the location of the call.
  public init(file: StaticString = #fileID, line: UInt = #line) {
    self.file = file
    number = UInt32(clamping: line)
  }

  public var description: String { "\(file):\(line)" }

  var name: String { "\(description.split(separator: "/").last?.prefix { $0 != ":" } ?? ""), line \(line)" }
}
