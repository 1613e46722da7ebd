import Testing

@testable import Operations

/// The decisions of stall reports and traces, as values.
struct DiagnosticValueTests {
  @Test(arguments: [[1, 2], [2, 1]]) func ofTwoExecutingDependencies_theOneThatExecutesLongerCounts(order: [Int]) {
    func node(waitingFor others: [Int], elapsed: Duration? = nil) -> StallNode {
      let waits = others.map { StallNode.Wait(node: $0, kind: .dependency) }
      let operation = AsyncOperation()
      let reason = StallNode.Reason.executing(operation, for: elapsed, isCancelled: false)
      return StallNode(subject: .operation(operation), waits: waits, reason: reason, elapsed: elapsed)
    }
    let nodes = [
      node(waitingFor: order), node(waitingFor: [], elapsed: .seconds(1)), node(waitingFor: [], elapsed: .seconds(2)),
    ]
    let findings = StallFindings(nodes)
    #expect(findings[0].explainer == 2 && findings[0].cause == .executing)
  }

  /// Returns the names of the rows of executions, each a kind and the seconds of its start and end.
  private func rows(_ executions: [(hasMembers: Bool, start: Int, end: Int)]) -> [String?] {
    let records = executions.enumerated().map { index, execution in
      var record = OperationTracer.Record(
        id: index,
        name: "",
        isGroup: execution.hasMembers,
        group: nil,
        created: .zero
      )
      (record.started, record.finished) = (.seconds(execution.start), .seconds(execution.end))
      return record
    }
    let (rows, indices) = TraceRow.rows(of: records, TraceIntervals(records, .zero))
    return records.map { record in indices[record.id].map { rows[$0].name } }
  }

  @Test func aRowThatIsFree_isUsedAgain() {
    let executions = [(true, 0, 2), (true, 1, 3), (true, 2, 4), (false, 0, 2), (false, 1, 3), (false, 3, 4)]
    #expect(
      rows(executions) == ["groups", "groups (2)", "groups", "asynchronous", "asynchronous (2)", "asynchronous (2)"]
    )
  }
}
