import Testing

@testable import Operations

struct DiagnosticValueTests {
  // MARK: The rows of a trace

  private struct Execution {
    let seconds: Range<Int>
    var isGroup = false
    var group: Int?
    var thread: Int?
  }

  private func group(_ seconds: Range<Int>, in group: Int? = nil) -> Execution {
    Execution(seconds: seconds, isGroup: true, group: group)
  }

  /// Returns the names of the rows of executions.
  private func rows(_ executions: [Execution]) -> [String?] {
    let records = executions.enumerated().map { id, execution in
      let isGroup = execution.isGroup
      let node = OperationGraph.Node(id: id, name: "", state: .pending, isGroup: isGroup, group: execution.group)
      var record = OperationTracer.Record(node: node, created: .zero)
      record.thread = execution.thread
      record.started = .seconds(execution.seconds.lowerBound)
      record.finished = .seconds(execution.seconds.upperBound)
      return record
    }
    let (rows, indices) = TraceRow.rows(of: records, TraceIntervals(records, .zero))
    return records.map { record in indices[record.id].map { rows[$0].name } }
  }

  @Test func aRowThatIsFree_isUsedAgain() {
    #expect(rows([group(0..<2), group(1..<3), group(2..<4)]) == ["groups", "groups (2)", "groups"])
    let executions = [0..<2, 1..<3, 3..<4].map { Execution(seconds: $0) }
    #expect(rows(executions) == ["asynchronous", "asynchronous (2)", "asynchronous (2)"])
  }

  @Test func threadsAreNumberedInTheOrderOfTheirFirstExecution() {
    var log = TraceLog()
    let threads = [AsyncOperation(), AsyncOperation()].map { ObjectIdentifier($0) }
    let numbers = [0, 1, 0].map { log.number(of: threads[$0], isMain: false) }
    #expect(numbers == [1, 2, 1])
  }

  @Test func aGroupThatOutlivesItsGroup_isNotDrawnInsideIt() {
    #expect(rows([group(0..<5), group(0..<5, in: 0)]) == ["groups", "groups"])
    #expect(rows([group(0..<5), group(1..<9, in: 0)]) == ["groups", "groups (2)"])
  }

  @Test(arguments: [(1..<5, "worker 1"), (5..<6, "worker 1"), (1..<8, "asynchronous")])
  func anOperationThatOutlivesItsStarter_isNotOnItsRow(seconds: Range<Int>, row: String) {
    #expect(rows([0..<5, seconds].map { Execution(seconds: $0, thread: 1) }) == ["worker 1", row])
  }
}
