/// Traps because of a programmer's error, with a message that says what happened and what to do.
///
/// `preconditionFailure` would drop the message in a release build. `fatalError` truncates a message at a NUL. The name
/// of an operation may contain NULs, so this function replaces them.
package func misuse(_ message: String, file: StaticString = #fileID, line: UInt = #line) -> Never {
  let scalars = message.unicodeScalars.map { $0 == "\0" ? "\u{2400}" : $0 }
  fatalError(String(String.UnicodeScalarView(scalars)), file: file, line: line)
}
