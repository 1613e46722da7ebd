import Foundation
import Operations
import OperationsTestSupport
import Testing

private let printed = Journal<String>()

private func print(_ items: Any...) { printed.write(items.map { "\($0)" }.joined(separator: " ")) }

/// The code in the comments of Sources/Operations/Diagnostics.
@Suite(.timeLimit(.minutes(5)))
struct DiagnosticsComments {
  private let queue = OperationQueue()
  private let importer = GroupOperation("Import") {
    AsyncOperation().named("Download") ==> AsyncOperation().named("Store")
  }

  @Test func asking() {
    queue.name = "sync"

    print(queue.stallReport())

    #expect(printed.entries.contains("Nothing is left to be done in the queue “sync”."))
  }

  @Test func durations() {
    let estimated = OperationGraph([importer]).withDurations { node in
      node.name == "Download" ? .seconds(2) : .milliseconds(50)
    }
    print(estimated.criticalPath!)

    #expect(printed.entries.contains { $0.contains("Download → Store") })
  }

  @Test func aGraph() {
    let graph = OperationGraph([importer])
    print(graph.mermaid())  // for Markdown
    if let cycle = graph.cycle { print("waits for itself:", cycle) }

    #expect(printed.entries.contains { $0.hasPrefix("flowchart") })
  }

  @Test func tracing() async throws {
    let file = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
    defer { try? FileManager.default.removeItem(at: file) }

    let tracer = OperationTracer()
    tracer.trace(importer)  // a group: its members, too, and those that are added later
    try await queue.run(importer)
    try tracer.chromeTrace().write(to: file)  // for ui.perfetto.dev, or chrome://tracing
    print(tracer.timeline())  // the same in a terminal
    print(tracer.summary)

    #expect(printed.entries.contains { $0.hasPrefix("2 operations in ") })
    #expect(try String(contentsOf: file, encoding: .utf8).contains("traceEvents"))
  }
}
