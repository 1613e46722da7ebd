#if os(macOS) || os(Linux)
import Foundation
import Testing

struct WordCountTests {
  /// Runs a command line in an empty folder, and returns its outcome and the trace that it writes there.
  private func traced(_ command: String) async throws -> (outcome: Shell.Outcome, trace: String) {
    try await Shell.open { shell in
      let outcome = try await shell.run(command)
      let trace = try await shell.run("cat trace.json").output
      #expect(trace.hasPrefix(#"{"displayTimeUnit":"ms","traceEvents":[{"#))
      #expect(trace.hasSuffix("]}") && !trace.contains("\n"))
      return (outcome, trace)
    }
  }

  @Test func invalidUTF8_printsWhatThePageShows() async throws {
    let expected = try Shell.transcript(of: "swift run WordCount --limit 4 texts")
    let outcome = try await Shell.run(
      """
      mkdir -p texts/folder; seq 2000 | split -l 20 - texts/part
      printf 'caf\\303\\251 au\\302\\240lait' > texts/folder/text; printf 'word \\377' > texts/folder/bytes
      WordCount --limit 4 texts
      """
    )
    #expect(outcome.errors + outcome.output == expected)
    #expect(outcome.output.hasSuffix(" files\n"))
    #expect(outcome.status == 1)
  }

  @Test(.enabled(if: Shell.isLinux)) func fileNameThatIsNotUTF8_isCounted() async throws {
    let outcome = try await Shell.run("mkdir tree; printf 'a b' > \"$(printf 'tree/\\377')\"; WordCount tree")
    #expect(outcome.output == "2 words in 1 file\n")
    #expect(outcome.status == 0)
  }

  @Test func trace_namesEveryFileAndSummarizes() async throws {
    let (outcome, trace) = try await traced(
      """
      mkdir tree; for n in 1 2 3; do echo $n > tree/$n; done; printf 'word \\377' > tree/bytes
      WordCount --trace trace.json tree
      """
    )
    #expect(outcome.status == 1)
    #expect(outcome.output == "3 words in 3 files\n")
    #expect(outcome.errors.contains(#/(?m)^[0-9]+ operations in /#))
    for name in ["chunks of tree/1", "read 1", "count 1"] { #expect(trace.contains("\"name\":\"\(name)\"")) }
    #expect(trace.contains(#""error":"is not valid UTF-8""#))
  }

  @Test func controlCharactersInAName_doNotReachTheTerminal() async throws {
    let outcome = try await Shell.run(
      "mkdir tree; printf '\\377' > \"$(printf 'tree/red \\033[31m')\"; WordCount --trace trace.json tree"
    )
    #expect(outcome.errors.contains(#""tree/red \u{1B}[31m": is not valid UTF-8"#))
    #expect(!outcome.errors.unicodeScalars.contains { $0.properties.generalCategory == .control && $0 != "\n" })
  }

  @Test(arguments: [
    ("WordCount --timeout 0.5 --trace trace.json zeros", 124),
    // The trace file is created once the arguments have been checked, just before the signal handler is installed.
    (
      """
      { for i in $(seq 300); do [ -e trace.json ] && break; sleep 0.1; done; sleep 1; kill -INT $(cat pid); } &
      sh -c 'echo $$ > pid; exec WordCount --timeout 60 --trace trace.json zeros'
      """, 130
    ),
  ])
  func timeoutAndInterrupt_writeTheTrace(_ command: String, _ status: Int32) async throws {
    let (outcome, trace) = try await traced("truncate -s 100G zeros\n\(command)")
    #expect(outcome.status == status)
    #expect(outcome.errors.contains(#/(?m)^[0-9]+ operations in /#))
    #expect(trace.contains(#""name":"CountOperation cancelled""#))
  }

  @Test(.enabled(if: Shell.isLinux), arguments: ["2> /dev/full", "2>&-"])
  func errorsThatCannotBeWritten_doNotTrap(_ redirection: String) async throws {
    let command = "printf '\\377' > bytes; WordCount --trace trace.json bytes \(redirection)"
    #expect(try await traced(command).outcome.status == 1)
  }
}
#endif
