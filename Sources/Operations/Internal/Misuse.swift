/// Ends the program because of a mistake in it, with a sentence that says what to do instead.
///
/// `fatalError`, not `preconditionFailure`: the latter loses its message in a release build.
package func misuse(_ message: String, file: StaticString = #fileID, line: UInt = #line) -> Never {
  fatalError(message, file: file, line: line)
}
