import Testing

struct PhotoUploadTests {
  private static let ways = [
    "On the main thread, all at once", "On the main thread, 2 a frame", "On the main thread, 10 every 0.05 s",
    "On a scheduler",
  ]

  /// Frames are measured in processor time, so the numbers hold on a busy machine.
  @Test func everyWay_missesTheFramesItCosts() async throws {
    let transcript = try #require(try Transcripts()["swift run -c release PhotoUpload"])
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
      try await checkChart("photos.svg", in: shell)
    }
  }

  private func checkChart(_ name: String, in shell: Shell) async throws {
    let svg = try await shell.run("cat \(name)").output
    for tag in ["svg", "g", "text", "title"] {
      let opening = svg.matches(of: try Regex("<\(tag)[ >]")).count
      #expect(opening == svg.matches(of: try Regex("</\(tag)>")).count)
      #expect(opening > 0)
    }
    #expect(svg.matches(of: #/(?m)^<g>$/#).count == Self.ways.count)
  }
}
