#if os(macOS) || os(Linux)
import Foundation
import Testing

/// HelloWorld, Dialogs, EchoPrinter, Feed and PhotoUpload, and the usage of every example but HelloWorld.
struct SmallExampleTests {
  private static let dialogs = "printf '%s\\n' y n y n y y | swift run Dialogs"

  @Test(arguments: [
    "swift run HelloWorld", dialogs, "printf 'a\\n\\nprefix >\\nb\\nq\\nc\\n' | swift run EchoPrinter",
  ])
  func commandOfThePage_printsWhatItShows_everyTime(_ command: String) async throws {
    let expected = try Shell.transcript(of: command)
    try await Shell.open { shell in
      for _ in 0..<10 {
        let outcome = try await shell.run(command.replacing("swift run ", with: ""))
        #expect(outcome.output == expected)
        #expect(outcome.status == 0)
      }
    }
  }

  // MARK: Dialogs

  @Test func noAnswers_giveUpEveryLoad() async throws {
    func trimmed(_ text: String) -> [String] {
      text.split(separator: "\n").map { String($0.replacing(#/ +$/#, with: "")) }
    }
    let answered = try Shell.transcript(of: Self.dialogs)
    let expected = answered.replacing(#/(?m): loaded$/#, with: ": given up").replacing(": y", with: ": n")
    try await Shell.open { shell in
      for _ in 0..<10 {
        let outcome = try await shell.run("Dialogs < /dev/null")
        #expect(trimmed(outcome.output) == trimmed(expected))
      }
    }
  }

  // MARK: EchoPrinter

  @Test(arguments: [("EchoPrinter < /dev/null", ""), ("printf 'a\\nb' | EchoPrinter", "out a\nout b\n")])
  func inputWithoutLineEnd_isPrinted(_ command: String, _ output: String) async throws {
    #expect(try await Shell.run(command).output == output)
  }

  @Test(arguments: [("{ head -c 10000000 /dev/zero | tr '\\0' x; echo; }", 1), ("seq 20000", 5)])
  func oneLongLineAndManyLines_arePrintedInOrder_everyTime(_ input: String, _ times: Int) async throws {
    let outcome = try await Shell.run(
      """
      \(input) > lines; sed 's/^/out /' lines > expected
      for n in $(seq \(times)); do cat lines | EchoPrinter | cmp - expected || exit 1; done
      """
    )
    #expect(outcome.status == 0)
  }

  // MARK: Feed

  /// The numbers differ from run to run; which of them are zero does not.
  private static func shape(_ text: String) -> String {
    let parts = text.components(separatedBy: "== live array")
    let numbers = #/(made|shown|coalesced): [1-9][0-9]*/#
    let liveNumbers = #/(drawn|faults): [1-9][0-9]*/#
    let live = parts.last?.replacing(liveNumbers) { "\($0.output.1): some" } ?? ""
    return ((parts.first ?? "") + "== live array" + live).replacing(numbers) { "\($0.output.1): some" }
  }

  @Test func snapshotsMissNoRow_theLiveArrayMissesSome_everyTime() async throws {
    let transcript = try Shell.transcript(of: "swift run Feed")
    let expected = Self.shape(transcript.replacing(": 120", with: ": 30"))
    try await Shell.open { shell in
      for _ in 0..<3 {
        let outcome = try await shell.run("Feed --frames 30")
        #expect(Self.shape(outcome.output) == expected)
        #expect(outcome.status == 0)
      }
    }
  }

  // MARK: PhotoUpload

  private static let ways = [
    "On the main thread, all at once", "On the main thread, 2 a frame", "On the main thread, 10 every 0.05 s",
    "On a scheduler",
  ]

  /// Frames are measured in processor time, so the numbers hold on a busy machine.
  @Test func everyWay_missesTheFramesItCosts() async throws {
    let transcript = try Shell.transcript(of: "swift run -c release PhotoUpload")
    try await Shell.open { shell in
      let outcome = try await shell.run("PhotoUpload --files 20 --svg photos.svg")
      #expect(outcome.status == 0)
      #expect(outcome.output.prefix { $0 != "=" } == transcript.prefix { $0 != "=" })
      let missed = try Self.ways.map { way in
        let row = try Regex(
          "\n== \(way)\nframes missed +([0-9]+)\nworst frame +[0-9.]+ ms\ntime to finish +[0-9.]+ s\n"
        )
        return try #require(try row.firstMatch(in: outcome.output)?[1].substring.flatMap { Int($0) })
      }
      // 20 photos in one frame are 62 ms of work, which is three frames too many. Ten are 36 ms, twice.
      #expect(missed == [3, 0, 4, 0])
      for line in outcome.output.split(separator: "\n") { #expect(line.count <= 80) }
      #if DEBUG
      #expect(outcome.errors.hasPrefix("This is a debug build."))
      #endif
      let svg = try await shell.run("cat photos.svg").output
      for tag in ["svg", "g", "text", "title"] {
        let opening = svg.matches(of: try Regex("<\(tag)[ >]")).count
        let closing = svg.matches(of: try Regex("</\(tag)>")).count
        #expect(opening > 0 && opening == closing)
      }
      #expect(svg.matches(of: #/(?m)^<g>$/#).count == Self.ways.count)
    }
  }

  // MARK: The usage, which every example prints for wrong arguments

  @Test(arguments: [
    "WordCount", "WordCount --limit 0 .", "WordCount --timeout never .", "WordCount --trace",
    "WordCount . .", "WordCount --draw .",
    "LinkCheck", "LinkCheck ftp://x/", "LinkCheck x", "LinkCheck --limit 0 http://x/",
    "LinkCheck http://x/ http://y/", "Dialogs push", "EchoPrinter loudly",
    "Feed --frames none", "Feed --frames", "Feed --draw",
    "Pipeline --draw", "Pipeline --svg", "PhotoUpload --files none", "PhotoUpload --files 0", "PhotoUpload --photos 20",
  ])
  func wrongArguments_explainTheUsage(_ command: String) async throws {
    let name = try #require(command.split(separator: " ").first)
    try await Shell.open { shell in
      let outcome = try await shell.run(command)
      #expect(outcome.status == 2 && outcome.output.isEmpty)
      let lines = outcome.errors.split(separator: "\n", omittingEmptySubsequences: false)
      try #require(lines.count > 3)
      #expect(lines[0].hasSuffix("."))
      let help = try await shell.run("\(name) --help")
      #expect(help.status == 0 && help.errors.isEmpty && help.output.hasPrefix("Usage: \(name)"))
      for line in help.output.split(separator: "\n") { #expect(line.count <= 80, "A terminal has 80 columns.") }
      #expect(outcome.errors == "\(lines[0])\n\n\(help.output)")
    }
  }

  @Test(arguments: [
    "WordCount nowhere", "WordCount --trace nowhere/trace.json .", "LinkCheck --svg nowhere/run.svg http://x/",
    "LinkCheck http://name.invalid/", "LinkCheck http://127.0.0.1:1/", "PhotoUpload --svg nowhere/photos.svg",
    "Pipeline --svg nowhere/run.svg",
  ])
  func aFileOrPageThatCannotBeUsed_isExplainedInOneLine(_ command: String) async throws {
    let outcome = try await Shell.run(command)
    #expect(outcome.status == 2 && outcome.output.isEmpty)
    #expect(outcome.errors.hasSuffix(".\n") && outcome.errors.count { $0 == "\n" } == 1)
  }

  private static let full = ": No space left on device"

  @Test(
    .enabled(if: Shell.isLinux),
    arguments: ["WordCount", "LinkCheck", "Dialogs", "EchoPrinter", "Feed", "PhotoUpload", "Pipeline"]
      .map { ("\($0) --help > /dev/full", full + ".") } + [
        ("HelloWorld > /dev/full", full), ("echo a | EchoPrinter > /dev/full", full + ". 0 lines were printed."),
        ("Dialogs < /dev/null > /dev/full", "."), ("Feed --frames 2 > /dev/full", "."),
        ("echo a > text; WordCount text > /dev/full", full + "."),
        ("echo a > text; WordCount text >&-", ": Bad file descriptor."),
      ]
  )
  func outputThatCannotBeWritten_fails(_ command: String, _ reason: String) async throws {
    let outcome = try await Shell.run(command)
    #expect(outcome.status == 1)
    #expect(outcome.errors == "Standard output could not be written\(reason)\n")
  }
}
#endif
