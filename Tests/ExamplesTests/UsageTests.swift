import Testing

/// Every example answers wrong arguments in the same way: a sentence and the usage on standard error, nothing on standard
/// output, and exit status 2.
struct UsageTests {
  @Test(
    arguments: [
      "WordCount", "WordCount nowhere", "WordCount --limit 0 .", "WordCount --timeout never .", "WordCount --trace",
      "WordCount --trace nowhere/trace.json .", "WordCount . .", "WordCount --draw .",
      "Dialogs push", "EchoPrinter loudly", "Feed --frames none", "Feed --draw",
      "PhotoUpload --files none", "PhotoUpload --svg nowhere/photos.svg", "PhotoUpload --photos 20",
    ]
  )
  func wrongArguments_explainTheUsage(_ command: String) async throws {
    let name = try #require(command.split(separator: " ").first)
    try await Shell.open { shell in
      let outcome = try await shell.run(command)
      #expect(outcome.status == 2)
      #expect(outcome.output.isEmpty)
      let sentence = try #require(outcome.errors.split(separator: "\n").first)
      #expect(sentence.hasSuffix("."))
      #expect(outcome.errors.contains("\nUsage: \(name)"))
    }
  }

  @Test(arguments: ["WordCount", "Dialogs", "EchoPrinter", "Feed", "PhotoUpload"])
  func help_printsTheUsage(_ name: String) async throws {
    try await Shell.open { shell in
      let outcome = try await shell.run("\(name) --help")
      #expect(outcome.status == 0)
      #expect(outcome.output.hasPrefix("Usage: \(name)"))
      #expect(outcome.errors.isEmpty)
      // Fits a terminal.
      for line in outcome.output.split(separator: "\n") { #expect(line.count <= 80) }
    }
  }
}
