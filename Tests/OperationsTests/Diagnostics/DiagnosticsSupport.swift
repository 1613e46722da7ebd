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

extension OperationTracer {
  /// The record of the only operation with this name.
  func record(_ name: String) throws -> Record { try #require(records.first { $0.name == name }) }

  /// The events of the trace that have one of the phases, or all of them if none is given.
  func events(_ phases: String...) throws -> [TraceEvent] {
    let trace = try #require(try JSONSerialization.jsonObject(with: chromeTrace()) as? [String: Any])
    #expect(trace["displayTimeUnit"] as? String == "ms")
    return try #require(trace["traceEvents"] as? [[String: Any]]).map { TraceEvent(fields: $0) }
      .filter { phases.isEmpty || phases.contains($0.phase ?? "") }
  }

  /// Traces operations and adds them to a queue.
  func trace(_ operations: [AsyncOperation], in queue: OperationQueue) {
    trace(operations)
    queue.addOperations(operations)
  }
}

func operation(_ name: String) -> AsyncOperation { AsyncOperation().named(name) }

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

extension GroupOperation {
  /// Waits until the group executes.
  func begun() async {
    let begun = Gate()
    addObserver(OperationObserver(didStart: { _ in begun.open() }))
    if isExecuting { begun.open() }
    await begun.opened()
  }
}

/// An event of the Trace Event Format.
struct TraceEvent {
  let fields: [String: Any]

  var name: String? { fields["name"] as? String }
  var phase: String? { fields["ph"] as? String }
  var category: String? { fields["cat"] as? String }
  var tid: Int? { fields["tid"] as? Int }
  var id: Int? { fields["id"] as? Int }
  var start: Double? { (fields["ts"] as? NSNumber)?.doubleValue }
  var duration: Double? { (fields["dur"] as? NSNumber)?.doubleValue }
  var begin: Double { start ?? -1 }
  var end: Double { begin + (duration ?? 0) }
  var arguments: [String: Any] { fields["args"] as? [String: Any] ?? [:] }
}

/// Expects that slices of one row are disjoint or nested.
func expectNesting(_ tracer: OperationTracer, _ comment: Comment? = nil) throws {
  for row in Dictionary(grouping: try tracer.events("X"), by: \.tid).values {
    var open: [Double] = []
    for slice in row.sorted(by: { $0.begin == $1.begin ? $0.end > $1.end : $0.begin < $1.begin }) {
      while let last = open.last, last <= slice.begin + 0.0005 { open.removeLast() }
      if let last = open.last { #expect(slice.end <= last + 0.0005, "\(slice) overlaps: \(comment ?? "")") }
      open.append(slice.end)
    }
  }
}
