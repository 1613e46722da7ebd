import Foundation
import Operations
import OperationsTestSupport
import Testing

private let printed = Journal<String>()

private func print(_ items: Any...) { printed.write(items.map { "\($0)" }.joined(separator: " ")) }

/// The page SeeingWhatHappens, and the comments in Sources/Operations/Diagnostics.
@Suite(.timeLimit(.minutes(5)))
struct SeeingWhatHappensSnippets {
  private struct Unreadable: Error {}

  private let queue = OperationQueue()
  private let importer = GroupOperation("Import") {
    AsyncOperation().named("Download") ==> AsyncOperation().named("Parse") ==> AsyncOperation().named("Store")
  }

  /// A file that is gone after the test.
  private func withFile(_ body: (URL) async throws -> Void) async throws {
    let file = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
    defer { try? FileManager.default.removeItem(at: file) }
    try await body(file)
  }

  @Test func aReport() async {
    let (login, upload) = (AsyncOperation().named("login"), AsyncOperation().named("upload"))
    login ==> upload
    queue.name = "sync"
    queue.addOperation(upload)

    print(queue.stallReport())

    for entry in queue.stallReport().roots where entry.cause == .notEnqueued {
      print("Was “\(entry.operation)” never added?")
    }

    #expect(printed.entries.contains { $0.hasPrefix("2 operations have not finished, in the queue “sync”") })
    #expect(printed.entries.contains("Was “login” never added?"))
    queue.addOperation(login)
    await queue.finished()
  }

  @Test func aGraph() async throws {
    try await withFile { file in
      let graph = OperationGraph([importer])
      print(graph.mermaid())  // for Markdown
      try graph.dot().write(to: file, atomically: true, encoding: .utf8)  // for Graphviz: dot -Tsvg

      let estimated = graph.withDurations { $0.name.hasPrefix("Download") ? .seconds(2) : .milliseconds(50) }
      if let path = estimated.criticalPath { print(path.names, path.duration) }

      let page = try Repository.file("Sources/Operations/Operations.docc/SeeingWhatHappens.md").lines
      let lines = page.joined(separator: "\n")
      #expect(lines.contains(graph.mermaid().trimmingCharacters(in: .newlines)), "\(graph.mermaid())")
      #expect(try String(contentsOf: file, encoding: .utf8).hasPrefix("digraph"))
      #expect(printed.entries.contains(#"["Download", "Parse", "Store"] 2.1 seconds"#))
    }
  }

  @Test func aTrace() async throws {
    try await withFile { file in
      let tracer = OperationTracer()
      tracer.trace(importer)  // a group: all that ever runs in it, too
      try await queue.run(importer)

      try tracer.chromeTrace().write(to: file)  // for ui.perfetto.dev or chrome://tracing
      print(tracer.timeline())  // the same in a terminal
      print(tracer.summary)  // how many ran at once, the longest wait for a slot, the critical path

      #expect(try String(contentsOf: file, encoding: .utf8).contains("traceEvents"))
      #expect(printed.entries.contains { $0.hasPrefix("3 operations in ") })
    }
  }

  @Test func aTracedQueue() async throws {
    let tracer = OperationTracer()
    tracer.trace(queue)
    try await queue.run(importer)
    print(tracer.timeline(width: 100, lines: 20))  // the 20 that took longest
    #expect(printed.entries.contains { $0.contains("  Download") })
  }

  @Test func comments() async throws {
    let estimated = OperationGraph([importer]).withDurations { node in
      node.name == "Download" ? .seconds(2) : .milliseconds(50)
    }
    print(estimated.criticalPath!)
    #expect(printed.entries.contains { $0.contains("Download → Parse → Store") })

    let graph = OperationGraph([importer])
    print(graph.mermaid())  // for Markdown
    if let cycle = graph.cycle { print("waits for itself:", cycle) }

    try await withFile { file in
      let tracer = OperationTracer()
      tracer.trace(importer)  // a group: its members, too, and those that are added later
      try await queue.run(importer)
      try tracer.chromeTrace().write(to: file)  // for ui.perfetto.dev, or chrome://tracing
      print(tracer.timeline())  // the same in a terminal
      print(tracer.summary)
    }
  }

  @Test func records() async throws {
    let importer = GroupOperation("Import") {
      AsyncOperation().named("Download") ==> ResultOperation<Void> { throw Unreadable() }.named("Parse")
    }
    let tracer = OperationTracer(clock: ManualClock())
    tracer.trace(importer)
    queue.addOperation(importer)
    await importer.finished()

    for record in tracer.records where record.error != nil { print(record.name, record.duration ?? .zero) }

    #expect(printed.entries.contains("Parse 0.0 seconds"), "\(printed.entries)")
  }
}
