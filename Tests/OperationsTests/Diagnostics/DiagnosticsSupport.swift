import Foundation
import Operations
import OperationsTestSupport
import Testing

extension StallReport {
  /// The entry of the only operation with this name.
  func entry(_ name: String) throws -> Entry {
    try #require(entries.first { $0.operation == name }, "no “\(name)” in: \(self)")
  }
}

/// Returns the reports on a cycle, in each of which all of these operations have it as their cause. One of a cycle gives
/// way after 20 ms, on a busy machine before `make` has made the reports. Then it is called again.
func reports(ofACycleOf names: [String], _ make: () async -> [StallReport]) async throws -> [StallReport] {
  while true {
    try Task.checkCancellation()
    let reports = await make()
    let causes = reports.map { report in names.map { name in report.entries.first { $0.operation == name }?.cause } }
    if causes.joined().allSatisfy({ $0 == .cycle }) { return reports }
  }
}

extension OperationTracer {
  /// The record of the only operation with this name.
  func record(_ name: String) throws -> Record { try #require(records.first { $0.name == name }) }

  /// The events of the trace that have one of the phases, or all of them if none is given.
  func events(_ phases: String...) throws -> [TraceEvent] {
    let trace = try JSONDecoder().decode(Trace.self, from: chromeTrace())
    #expect(trace.displayTimeUnit == "ms")
    return trace.traceEvents.filter { phases.isEmpty || phases.contains($0.ph) }
  }

  /// Traces operations and adds them to a queue.
  func trace(_ operations: [AsyncOperation], in queue: OperationQueue) {
    trace(operations)
    queue.addOperations(operations)
  }
}

func operation(_ name: String) -> AsyncOperation { AsyncOperation().named(name) }

/// Returns a group in a group in a group: the innermost, “0”, has the operation.
func nestedGroups(around operation: Operation, levels: Int) -> GroupOperation {
  var group = GroupOperation([operation]).named("0")
  for level in 1..<levels { group = GroupOperation([group]).named("\(level)") }
  return group
}

/// Removes all dependencies, because a cycle would keep itself alive.
func untie(_ operations: [Operation]) {
  for operation in operations { for other in operation.dependencies { operation.removeDependency(other) } }
}

extension ManualClock {
  /// An operation that executes for a time of the clock.
  func delay(_ name: String, _ milliseconds: Int) -> DelayOperation {
    let operation = DelayOperation(.milliseconds(milliseconds)).named(name)
    operation.clock = self
    return operation
  }

  /// Advances by 10 ms for each count, as soon as there are that many sleepers.
  func tick(sleepers counts: [Int]) async {
    for count in counts { await advance(by: .milliseconds(10), sleepers: count) }
  }
}

private struct Trace: Decodable {
  let displayTimeUnit: String
  let traceEvents: [TraceEvent]
}

struct TraceEvent: Decodable {
  struct Arguments: Decodable {
    let name, state, group, waitedForKeys: String?
    let sortIndex: Int?

    /// The exact keys, because viewers ignore others.
    private enum CodingKeys: String, CodingKey {
      case name, state, group
      case waitedForKeys = "waited_for_keys"
      case sortIndex = "sort_index"
    }
  }

  let name, ph: String
  let pid, tid: Int
  let cat, s, bp: String?
  let id: Int?
  let ts, dur: Double?
  let args: Arguments?

  var begin: Double { ts ?? -1 }
  var end: Double { begin + (dur ?? 0) }
}
