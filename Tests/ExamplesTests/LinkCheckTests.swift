#if os(Linux)
import Foundation
import LocalServer
import OperationsTestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct LinkCheckTests {
  /// A page with links to these paths.
  private static func links(_ paths: String...) -> LocalServer.Response {
    .page(paths.map { "<a href=\"\($0)\">\($0)</a>" }.joined(separator: "\n"))
  }

  /// Responds with these pages, and has no others.
  private static func site(_ pages: [String: LocalServer.Response]) -> @Sendable (String, Int) -> LocalServer.Response {
    { path, _ in pages[path] ?? .status(404) }
  }

  /// Runs LinkCheck on a server, and returns the outcome and the server.
  private func check(
    _ options: String = "",
    _ respond: @escaping @Sendable (_ path: String, _ visit: Int) -> LocalServer.Response
  ) async throws -> (outcome: Shell.Outcome, server: LocalServer) {
    let server = try LocalServer(respond)
    defer { server.stop() }
    return (try await Shell.run("LinkCheck \(options) \(server.address)"), server)
  }

  @Test func brokenLinks_areListedWithTheirPages() async throws {
    let (outcome, server) = try await check { path, visit in
      switch path {
      case "/": Self.links("/a", "/missing", "/loop", "/failing", "/recovering#part", "mailto:a@b")
      case "/a": Self.links("/", "/missing", "a?x=1&amp;y=2")
      case "/recovering": visit < 3 ? .status(503) : .page("")
      case "/failing": .status(500)
      case "/loop": .status(302, location: "/loop2")
      case "/loop2": .status(302, location: "/loop")
      case "/a?x=1&y=2": .page("")
      default: .status(404)
      }
    }
    let expected = """
      /failing: 500 Internal Server Error
        on /
      /loop: endless redirection
        on /
      /missing: 404 Not Found
        on /
        on /a
      4 pages, 3 broken links

      """
    #expect(outcome.output.replacing(server.address, with: "") == expected)
    #expect(outcome.status == 1)
    let counts = server.counts
    #expect(counts["/"] == 1 && counts["/a"] == 1 && counts["/missing"] == 1 && counts["/robots.txt"] == 1)
    #expect(counts["/recovering"] == 3 && counts["/failing"] == 3)
  }

  @Test func json_hasTheSame() async throws {
    let server = try LocalServer(Self.site(["/": Self.links("/missing")]))
    defer { server.stop() }
    try await Shell.open { shell in
      let outcome = try await shell.run("LinkCheck --json --trace trace.json --svg run.svg \(server.address)")
      let report = try #require(try JSONSerialization.jsonObject(with: Data(outcome.output.utf8)) as? [String: Any])
      let broken = try #require((report["broken"] as? [[String: Any]])?.first)
      #expect(report["visited"] as? Int == 1)
      #expect(broken["reason"] as? String == "404 Not Found" && broken["pages"] as? [String] == ["\(server.address)/"])
      let trace = try await shell.run("cat trace.json").output
      #expect(trace.contains("\"name\":\"\(server.address)/missing\""))
      let picture = try await shell.run("cat run.svg").output
      #expect(picture.hasPrefix("<svg") && picture.contains("\(server.address)/missing</text>"))
      #expect(outcome.status == 1)
    }
  }

  @Test(.enabled(if: Shell.chromium != nil)) func thePageOfTheRun_isSearchedInABrowser() async throws {
    let server = try LocalServer { path, _ in
      path == "/" ? Self.links("/gone", "/home") : .status(path == "/gone" ? 404 : 200)
    }
    defer { server.stop() }
    let chromium = try #require(Shell.chromium)
    try await Shell.open { shell in
      _ = try await shell.run("LinkCheck --html run.html \(server.address)")
      let flags = "--headless --no-sandbox --disable-gpu --user-data-dir=profile --dump-dom"
      let page = try await shell.run("\(chromium) \(flags) \"file://$PWD/run.html#gone\"").output
      #expect(page.contains(#/<output id="count">2 of \d+</output>/#), "\(page)")
      #expect(page.contains(#/<li data-id="\d+"[^>]*>[^<]*gone[^<]*: 404 Not Found/#), "\(page)")
      #expect(page.matches(of: #/<rect class="finished"/#).count > 2, "\(page)")
    }
  }

  @Test func thousandPages_areEachVisitedOnce_fewAtATime() async throws {
    // A page that came too late would be loaded again, while the connection of the first attempt is still open.
    let (outcome, server) = try await check("--limit 3 --rate 100000 --timeout 1000000") { path, _ in
      guard let number = Int(path.dropFirst()) else { return path == "/" ? Self.links("/1") : .status(404) }
      let next = [number * 2, number * 2 + 1, number / 2].filter { (1..<1000).contains($0) }
      return .page(next.map { "<a href='/\($0)'>" }.joined())
    }
    #expect(outcome.output == "1000 pages, 0 broken links\n")
    #expect(outcome.status == 0)
    #expect(server.counts.count == 1001 && server.counts.values.allSatisfy { $0 == 1 })
    #expect(server.mostOpen <= 3)
  }

  @Test func pagesThatRobotsMustNotVisit_areNotRequested() async throws {
    let (outcome, server) = try await check { path, _ in
      switch path {
      case "/robots.txt": .page("User-agent: *\nDisallow: /private")
      case "/": Self.links("/private/page", "/public")
      default: .page("")
      }
    }
    #expect(outcome.status == 0)
    #expect(server.counts["/private/page"] == nil && server.counts["/public"] == 1)
  }

  @Test func pageThatNeverEnds_timesOut() async throws {
    let (outcome, _) = try await check("--timeout 3", Self.site(["/": Self.links("/endless"), "/endless": .endless]))
    #expect(outcome.output.contains("/endless: ") && outcome.output.hasSuffix("1 page, 1 broken link\n"))
    #expect(outcome.status == 1)
  }

  @Test func interrupt_printsWhatWasFound() async throws {
    // The pages between the broken link and the endless one leave the crawl the time to note the broken link.
    let pages: [String: LocalServer.Response] = [
      "/": Self.links("/missing", "/between"), "/between": Self.links("/then"), "/then": Self.links("/endless"),
      "/endless": .endless,
    ]
    let server = try LocalServer(Self.site(pages))
    defer { server.stop() }
    try await Shell.open { shell in
      async let outcome = shell.run("sh -c 'echo $$ > pid; exec LinkCheck --limit 1 --timeout 60 \(server.address)'")
      await server.requestsEndless.opened()
      _ = try await shell.run("kill -INT $(cat pid)")
      let ended = try await outcome
      #expect(ended.status == 130)
      #expect(ended.output.hasSuffix("\n3 pages, 1 broken link\n"))
    }
  }
}
#endif
