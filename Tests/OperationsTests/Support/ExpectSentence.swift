#if !os(iOS) && !os(tvOS) && !os(watchOS) && !os(visionOS)
import Testing

/// What a program that ended itself has printed contains these parts of a sentence.
func expectSentence(
  _ parts: String...,
  in result: ExitTest.Result?,
  sourceLocation: SourceLocation = #_sourceLocation
) {
  let printed = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
  for part in parts { #expect(printed.contains(part), "\(printed)", sourceLocation: sourceLocation) }
}
#endif
