/// Traps because of a programmer's error. `preconditionFailure` would drop the message in a release build, and
/// `fatalError` truncates it at a NUL, which the name of an operation may contain.
package func misuse(_ message: String, file: StaticString = #fileID, line: UInt = #line) -> Never {
  let scalars = message.unicodeScalars.map { $0 == "\0" ? "\u{2400}" : $0 }
  fatalError(String(String.UnicodeScalarView(scalars)), file: file, line: line)
}
