import Foundation
import Operations
import Soak
import Testing

/// Reports, graphs and traces of very many operations take no stack, and no more than linear time.
@Suite(.timeLimit(.minutes(5)))
struct LargeDiagnosticsTests {
  @Test func aStallReportOfALongChainHasShortSentences() {
    let report = GroupOperation(chain((0..<8000).map { operation("\($0)") })).named("group").stallReport()
    #expect(report.entries.count == 8001 && report.roots.map(\.operation) == ["group"])
    #expect(report.entries.allSatisfy { $0.description.count < 300 })
    #expect("\(report)".components(separatedBy: "\n").count == 102 && "\(report)".hasSuffix("… and 7901 more."))
  }

  @Test func groupsNested8000Deep() async {
    let (leaf, queue, tracer) = (HeldOperation().named("leaf"), OperationQueue(), OperationTracer())
    let group = nestedGroups(around: leaf, levels: 8000)
    let entries = group.stallReport().entries
    #expect(entries.count == 8001 && entries.last?.root == "7999")
    #expect((entries.last?.description.utf8.count ?? .max) < 1000)
    let graph = OperationGraph([group]).withDurations { _ in .seconds(1) }
    #expect(graph.nodes.count == 8001 && graph.cycle == nil && graph.criticalPath?.names == ["leaf"])
    #expect(graph.mermaid().components(separatedBy: "subgraph ").count == 8001)
    #expect(graph.dot().components(separatedBy: "subgraph ").count == 8001)
    tracer.trace(group)
    await queue.add(group, until: leaf.begun)
    #expect(queue.stallReport().entries.allSatisfy { $0.root == ($0.operation == "leaf" ? nil : "leaf") })
    _ = (tracer.chromeTrace(), tracer.timeline(lines: 3), tracer.graph.criticalPath)
    #expect(tracer.records.count == 8001)
    await group.finished(opening: leaf.gate)
  }

  /// Fewer plain operations, because their dependencies cost more in Foundation.
  @Test(arguments: [(false, isThorough ? 100_000 : 10_000), (true, isThorough ? 20_000 : 2_000)])
  func aGraphOfALongChain(isPlain: Bool, count: Int) {
    let operations = chain((0..<count).map { _ in isPlain ? Operation() : AsyncOperation() })
    let graph = OperationGraph([operations[count - 1]]).withDurations { _ in .milliseconds(1) }
    #expect(graph.nodes.count == count && graph.cycle == nil)
    #expect(graph.criticalPath?.duration == .milliseconds(count) && graph.criticalPath?.names.count == count)
    #expect(graph.dot().utf8.count > 10 * count && graph.mermaid().utf8.count > 10 * count)
    operations[count - 1] ==> operations[0]
    #expect(OperationGraph([operations[5]]).cycle?.count == count)
    // The release of a long chain of plain operations would take stack.
    untie(operations)
  }

  @Test func aFanOf30000() {
    let (first, last, tracer) = (AsyncOperation(), AsyncOperation(), OperationTracer())
    let fan = (0..<30_000).map { _ in AsyncOperation() }
    first ==> fan ==> last
    let graph = OperationGraph([last]).withDurations { _ in .seconds(1) }
    #expect(graph.nodes.count == 30_002 && graph.criticalPath?.duration == .seconds(3))
    #expect(graph.dot().split(separator: "->").count == 60_001)
    tracer.trace(fan + [last])
    #expect(tracer.records.last?.dependencies.count == 30_000)
  }
}
