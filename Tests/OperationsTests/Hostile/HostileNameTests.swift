import Foundation
import Operations
import OperationsTestSupport
import Testing

/// Hostile names (one of a megabyte is in ``MisuseTests``), in everything that refers to operations by name. No name
/// changes the result, or leaves the line, the label or the string that it is in.
@Suite(.timeLimit(.minutes(5)))
struct HostileNameTests {
  static let names: [String] = [
    "", " ", "\n", "\r\n", "\t", "\0", "a\0b", String(decoding: Array(UInt8(0x20)...0x7E), as: UTF8.self), "\"", "'",
    "`", "```", "“”", "«»", "\\", "\\\\\"", "\\n", "\\N \\G \\L", "%s%n%@", "<b>&amp;</b>", "&lt; &bogus; #35;", "]]>",
    "<!-- -->", "<script>alert(1)</script>", "{\"a\": [1}", "#quot;", "%% comment", "%%{init: {'theme':'dark'}}%%",
    "end", "subgraph x", "graph TD", "style", "classDef x fill:red;", "click n0 href", "a --> b", "a-->|x|b", "a -> b;",
    "\"]; n9 [label=\"x", "digraph {", "{a|b|<p>c}", "|table|", "(((x)))", "1. item", "# heading", "**bold**", "_em_",
    "[link](http://x)", "![x](y)", "$$x^2$$", "---", "n0:::class", "a@{shape: cloud}", "fa:fa-car", "\u{1B}[31mred",
    "\u{7}\u{8}\u{7F}\u{85}", "\u{2028}\u{2029}", "\u{202E}backwards", "\u{200F}\u{200E}\u{2066}", "\u{FEFF}",
    "\u{200B}", "e\u{301}", "\u{E9}", "a" + String(repeating: "\u{300}", count: 500), "😀", "👨‍👩‍👧‍👦🏳️‍🌈", "日本語", "한국어",
    "עברית", "\u{FFFF}\u{10FFFF}", "\u{E000}", String(repeating: "x", count: 1 << 16),
    String(repeating: "😀", count: 5000), String(repeating: "\n", count: 2000), "null", "nil", "AsyncOperation",
  ]

  /// The name in messages. An operation without a name has that of its type.
  private func spoken(_ name: String, _ type: String) -> String { name.isEmpty ? type : name }

  private func failing(_ name: String) -> AsyncBlockOperation {
    AsyncBlockOperation({ $0.finish(with: TestError("boom")) }, line: 7).named(name)
  }

  @Test(arguments: names) func inErrors(_ name: String) async throws {
    let group = GroupOperation([failing(name)]).named(name)
    let error = try #require(await #expect(throws: AggregateError.self) { try await OperationQueue().run(group) })
    let path = [spoken(name, "group operation"), spoken(name, "HostileNameTests.swift, line 7")]
    #expect(error.primary.path == path && error.description == path.joined(separator: " › ") + ": boom")

    let conditional = AsyncOperation().named(name)
    conditional.addCondition(name) { _ in throw TestError("boom") }
    let unmet = "“\(spoken(name, "async operation"))” did not run because its condition “\(name)” was not met: boom."
    let thrown = await #expect(throws: OperationError.self) { try await OperationQueue().run(conditional) }
    #expect(thrown?.message == unmet)
  }

  @Test(arguments: names) func asKeys(_ name: String) async throws {
    let (domain, key) = (ExclusivityDomain(), ExclusivityKey(name))
    let (queue, holder) = (OperationQueue(), HeldOperation().named(name))
    await queue.begin(holder.exclusive(key, key, in: domain))
    let dropped = AsyncOperation().named(name)
    queue.addOperation(dropped.exclusive([key], policy: .drop, in: domain))
    let message = try #require(dropped.errors.first as? OperationError).message
    #expect(message.contains("has the key “\(name)”") && domain.holders(of: key) == [spoken(name, "HeldOperation")])
    await queue.drained(opening: [holder.gate])
  }

  @Test(arguments: names) func inStallReports(_ name: String) throws {
    let queue = OperationQueue.suspended()
    queue.name = name
    let (first, group) = (AsyncOperation().named(name), GroupOperation([AsyncOperation().named(name)]).named(name))
    first ==> group
    queue.addOperations([first, group])
    let report = queue.stallReport()
    #expect(report.entries.count == 3)
    // A line each, and one above them.
    #expect(report.description.unicodeScalars.count { CharacterSet.newlines.contains($0) } == 3)
    #expect(!report.description.unicodeScalars.contains { $0.value < 0x20 && $0 != "\n" })
    let decoded = try JSONDecoder().decode(StallReport.self, from: JSONEncoder().encode(report))
    #expect(decoded.entries.map(\.operation) == report.entries.map(\.operation))
    queue.cancelAllOperations()
    queue.isSuspended = false
  }

  private func isInvisible(_ character: Character) -> Bool {
    character.unicodeScalars.allSatisfy { $0.properties.generalCategory == .format }
  }

  @Test(arguments: names) func inTraces(_ name: String) async throws {
    let tracer = OperationTracer()
    let group = GroupOperation([failing(name), AsyncOperation().named(name)]).named(name)
    tracer.trace(group)
    _ = await ending(group)
    let shown = spoken(name, "group operation")
    #expect(try tracer.events().contains { $0.name == shown || $0.name == shown + " " })
    // The scale, three operations, and what is after the last newline.
    let lines = tracer.timeline().split(omittingEmptySubsequences: false) { $0.isNewline }
    #expect(lines.count == 5 && lines.allSatisfy { $0.count { !isInvisible($0) } <= 100 })
    #expect(tracer.graph.nodes.count == 3)
  }

  @Test(arguments: names) func asSchedulers(_ name: String) async throws {
    let scheduler = SerialScheduler(name: name)
    #expect(try await scheduler.run { scheduler.isCurrent } && scheduler.name == name)
    scheduler.shutDown()
    let error = await #expect(throws: OperationError.self) { try await scheduler.run {} }
    #expect(error?.message == "The event was not run because the scheduler “\(name)” has been shut down.")
  }
}
