import Testing

/// Every example answers wrong arguments in the same way: a sentence and the usage on standard error, nothing on
/// standard output, and exit status 2.
struct UsageTests {
  @Test(
    arguments: [
      "WordCount", "WordCount nowhere", "WordCount --limit 0 .", "WordCount --timeout never .", "WordCount --trace",
      "WordCount --trace nowhere/trace.json .", "WordCount . .", "WordCount --draw .",
      "LinkCheck", "LinkCheck ftp://x/", "LinkCheck x", "LinkCheck --limit 0 http://x/",
      "LinkCheck http://x/ http://y/",
      "LinkCheck http://name.invalid/", "LinkCheck http://127.0.0.1:1/", "Dialogs push", "EchoPrinter loudly",
      "Feed --frames none", "Feed --frames", "Feed --draw",
      "PhotoUpload --files none", "PhotoUpload --files 0", "PhotoUpload --svg nowhere/photos.svg",
      "PhotoUpload --photos 20",
    ]
  )
  func wrongArguments_explainTheUsage(_ command: String) async throws {
    let name = try #require(command.split(separator: " ").first)
    try await Shell.open { shell in
      let outcome = try await shell.run(command)
      #expect(outcome.status == 2 && outcome.output.isEmpty)
      let lines = outcome.errors.split(separator: "\n", omittingEmptySubsequences: false)
      try #require(lines.count > 3)
      #expect(lines[0].hasSuffix("."))
      let help = try await shell.run("\(name) --help").output
      #expect(outcome.errors == "\(lines[0])\n\n\(help)")
    }
  }

  private static let names = ["WordCount", "LinkCheck", "Dialogs", "EchoPrinter", "Feed", "PhotoUpload"]

  @Test(arguments: names)
  func help_printsTheUsage(_ name: String) async throws {
    let outcome = try await Shell.run("\(name) --help")
    #expect(outcome.status == 0 && outcome.errors.isEmpty)
    #expect(outcome.output.hasPrefix("Usage: \(name)"))
    for line in outcome.output.split(separator: "\n") { #expect(line.count <= 80, "A terminal has 80 columns.") }
  }

  @Test(
    .enabled(if: Shell.isLinux),
    arguments: names.map { "\($0) --help" }
      + ["HelloWorld", "Dialogs < /dev/null", "echo a | EchoPrinter", "Feed --frames 2"]
  )
  func outputThatCannotBeWritten_fails(_ command: String) async throws {
    let outcome = try await Shell.run("\(command) > /dev/full")
    #expect(outcome.status == 1)
    #expect(outcome.errors.contains("Standard output could not be written"))
  }
}
