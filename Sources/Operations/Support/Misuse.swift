/// Traps because of a programmer's error, with a message that says what happened and what to do.
///
/// This is not `preconditionFailure`, which drops its message in a release build. `fatalError` truncates a message at
/// a NUL, which an operation's name may contain, so NULs are replaced.
package func misuse(_ message: String, file: StaticString = #fileID, line: UInt = #line) -> Never {
  let scalars = message.unicodeScalars.map { $0 == "\0" ? "\u{2400}" : $0 }
  fatalError(String(String.UnicodeScalarView(scalars)), file: file, line: line)
}
