/// Ends the program because of a mistake in it, with a sentence that says what to do instead.
///
/// `fatalError`, not `preconditionFailure`: the latter loses its message in a release build. It would end the sentence
/// at a NUL, which a name may contain.
package func misuse(_ message: String, file: StaticString = #fileID, line: UInt = #line) -> Never {
  let scalars = message.unicodeScalars.map { $0 == "\0" ? "\u{2400}" : $0 }
  fatalError(String(String.UnicodeScalarView(scalars)), file: file, line: line)
}
