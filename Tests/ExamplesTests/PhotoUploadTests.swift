import Testing

struct PhotoUploadTests {
  private static let ways = [
    "On the main thread, all at once", "On the main thread, 2 a frame", "On the main thread, 10 every 0.05 s",
    "On a scheduler",
  ]

  @Test func everyWay_isMeasuredAndDrawn() async throws {
    try await Shell.open { shell in
      let outcome = try await shell.run("PhotoUpload --files 20 --svg photos.svg")
      #expect(outcome.status == 0)
      for way in Self.ways { #expect(outcome.output.contains("\n== \(way)\n")) }
      for label in ["frames missed", "worst frame", "time to finish"] {
        #expect(outcome.output.matches(of: try Regex("(?m)^\(label) +[0-9]")).count == 4)
      }
      // 20 photos in one frame are 62 ms of work, which is three frames too many.
      let atOnce = try #require(outcome.output.firstMatch(of: #/all at once\nframes missed +([0-9]+)/#))
      #expect(try #require(Int(atOnce.output.1)) >= 3)
      for line in outcome.output.split(separator: "\n") { #expect(line.count <= 80) }
    }
  }

  @Test func svg_hasAPanelForEachWay() async throws {
    try await Shell.open { shell in
      let svg = try await shell.run("PhotoUpload --files 20 --svg photos.svg > /dev/null; cat photos.svg").output
      for tag in ["svg", "g", "text", "title"] {
        let opening = svg.matches(of: try Regex("<\(tag)[ >]")).count
        #expect(opening == svg.matches(of: try Regex("</\(tag)>")).count)
        #expect(opening > 0)
      }
      #expect(svg.matches(of: #/(?m)^<g>$/#).count == Self.ways.count)
    }
  }
}
