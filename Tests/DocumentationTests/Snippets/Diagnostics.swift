import Foundation
import Operations
import OperationsTestSupport
import Testing

/// The page Diagnostics, and the comments in Sources/Operations/Diagnostics.
@Suite(.timeLimit(.minutes(5)))
struct DiagnosticsSnippets: Printing {
  private struct Unreadable: Error {}

  private let queue = OperationQueue()
  let printed = Journal<String>()
  private let importer = GroupOperation("Import") {
    operation("Download") ==> operation("Parse") ==> operation("Store")
  }

  private let file = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)

  private func text(of file: URL) throws -> String {
    defer { try? FileManager.default.removeItem(at: file) }
    return try String(contentsOf: file, encoding: .utf8)
  }

  @Test func aReport() async {
    let (login, upload) = (operation("login"), operation("upload"))
    login ==> upload
    queue.addOperation(upload)
    for entry in queue.stallReport().roots where entry.cause == .notEnqueued {
      print("Was “\(entry.operation)” never added?")
    }
    #expect(printed.entries == ["Was “login” never added?"])
    queue.addOperation(login)
    await queue.finished()
  }

  @Test func aGraph() throws {
    let graph = OperationGraph([importer])
    print(graph.mermaid())  // for Markdown
    if let cycle = graph.cycle { print("waits for itself:", cycle) }
    // For Graphviz: dot -Tsvg.
    try graph.dot().write(to: file, atomically: true, encoding: .utf8)

    let estimated = graph.withDurations { $0.name.hasPrefix("Download") ? .seconds(2) : .milliseconds(50) }
    if let path = estimated.criticalPath { print(path.names, path.duration) }
    let page = try Repository.file("Sources/Operations/Operations.docc/Diagnostics.md").lines
    #expect(page.joined(separator: "\n").contains(graph.mermaid().trimmingCharacters(in: .newlines)))
    #expect(try text(of: file).hasPrefix("digraph"))
    #expect(printed.entries == [graph.mermaid(), #"["Download", "Parse", "Store"] 2.1 seconds"#])
  }

  @Test func aTrace() async throws {
    let page = file.appendingPathExtension("html")
    let tracer = OperationTracer()
    tracer.trace(importer)  // a group, its members, and members added later
    try await queue.run(importer)
    try tracer.chromeTrace().write(to: file)  // for ui.perfetto.dev, or chrome://tracing
    print(tracer.timeline())  // the same in a terminal
    print(tracer.summary)
    try tracer.html().write(to: page, atomically: true, encoding: .utf8)
    #expect(try text(of: file).contains("traceEvents"))
    #expect(try text(of: page).contains("<svg"))
    #expect(printed.entries.last?.hasPrefix("3 operations in ") == true)
  }

  @Test func aTracedQueue() async {
    let tracer = OperationTracer()
    tracer.trace(queue)
    queue.addOperation(ResultOperation<Void> { throw Unreadable() }.named("Parse"))
    await queue.finished()
    for record in tracer.records where record.error != nil { print(record.name, record.duration ?? .zero) }
    #expect(printed.count == 1 && printed.entries[0].hasPrefix("Parse "))
  }
}
