import Testing

struct DialogsTests {
  private static let command = "printf '%s\\n' y n y n y y | swift run Dialogs"

  @Test func answersFromAPipe_printWhatThePageShows_everyTime() async throws {
    let expected = try #require(try Transcripts()[Self.command])
    try await Shell.open { shell in
      for _ in 0..<10 {
        let outcome = try await shell.run("printf '%s\\n' y n y n y y | Dialogs")
        #expect(outcome.output == expected)
        #expect(outcome.status == 0)
      }
    }
  }

  @Test func noAnswers_giveUpEveryLoad() async throws {
    let answered = try #require(try Transcripts()[Self.command])
    let expected = answered.replacing(#/(?m): loaded$/#, with: ": given up").replacing(": y", with: ": n")
    try await Shell.open { shell in
      for _ in 0..<10 {
        let outcome = try await shell.run("Dialogs < /dev/null")
        #expect(Self.trimmed(outcome.output) == Self.trimmed(expected))
      }
    }
  }

  private static func trimmed(_ text: String) -> [String] {
    text.split(separator: "\n").map { String($0.replacing(#/ +$/#, with: "")) }
  }
}
