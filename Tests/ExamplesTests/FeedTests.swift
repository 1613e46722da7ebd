import Foundation
import Testing

struct FeedTests {
  /// The numbers differ from run to run; which of them are zero does not.
  private static func shape(_ text: String) -> String {
    let parts = text.components(separatedBy: "== live array")
    let numbers = #/(made|shown|coalesced): [1-9][0-9]*/#
    let liveNumbers = #/(drawn|faults): [1-9][0-9]*/#
    let live = parts.last?.replacing(liveNumbers) { "\($0.output.1): some" } ?? ""
    return ((parts.first ?? "") + "== live array" + live).replacing(numbers) { "\($0.output.1): some" }
  }

  @Test func snapshotsMissNoRow_theLiveArrayMissesSome_everyTime() async throws {
    let transcript = try #require(try Transcripts()["swift run Feed"])
    let expected = Self.shape(transcript.replacing(": 120", with: ": 30"))
    try await Shell.open { shell in
      for _ in 0..<3 {
        let outcome = try await shell.run("Feed --frames 30")
        #expect(Self.shape(outcome.output) == expected)
        #expect(outcome.status == 0)
      }
    }
  }
}
