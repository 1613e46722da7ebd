import Testing

struct HelloWorldTests {
  @Test func printsWhatThePageShows_everyTime() async throws {
    let expected = try #require(try Transcripts()["swift run HelloWorld"])
    try await Shell.open { shell in
      for _ in 0..<10 {
        let outcome = try await shell.run("HelloWorld")
        #expect(outcome.output == expected)
        #expect(outcome.status == 0)
      }
    }
  }

  @Test(.enabled(if: Shell.isLinux)) func outputThatCannotBeWritten_fails() async throws {
    try await Shell.open { shell in
      let outcome = try await shell.run("HelloWorld > /dev/full")
      #expect(outcome.status == 1)
      #expect(!outcome.errors.isEmpty)
    }
  }
}
