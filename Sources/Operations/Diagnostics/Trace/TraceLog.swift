import Foundation

/// The records of a tracer, a value behind the tracer's lock.
struct TraceLog {
  private struct Plain {
    weak var operation: Operation?
    let index: Int
  }

  private(set) var records: [OperationTracer.Record] = []
  /// The indices of plain Foundation operations, which cannot store their index themselves.
  private var plain: [ObjectIdentifier: Plain] = [:]
  /// The operations that a thread is attaching the tracer to.
  private var beginning: Set<ObjectIdentifier> = []
  private var workers: [ObjectIdentifier: Int] = [:]

  subscript(index: Int) -> OperationTracer.Record {
    get { records[index] }
    _modify { yield &records[index] }
  }

  /// Claims an operation for the current thread until ``hasBegun(_:)``.
  ///
  /// - Returns: False if another thread has claimed it.
  mutating func begin(_ operation: Operation) -> Bool { beginning.insert(ObjectIdentifier(operation)).inserted }

  mutating func hasBegun(_ operation: Operation) { beginning.remove(ObjectIdentifier(operation)) }

  /// - Returns: The index of the new record.
  mutating func add(_ name: String, isGroup: Bool, inside group: Int?, _ now: Duration) -> Int {
    records.append(OperationTracer.Record(records.count, name, isGroup, group, now))
    return records.count - 1
  }

  mutating func put(_ index: Int, inside group: Int) {
    if records[index].group == nil { records[index].group = group }
  }

  mutating func note(plain operation: Operation, _ index: Int) {
    plain[ObjectIdentifier(operation)] = Plain(operation: operation, index: index)
  }

  /// The index of a plain operation. An entry for the same address may belong to an earlier, released operation.
  func index(ofPlain operation: Operation) -> Int? {
    guard let entry = plain[ObjectIdentifier(operation)], entry.operation === operation else { return nil }
    return entry.index
  }

  /// The number of a thread. 0 is the main thread.
  mutating func worker(_ thread: ObjectIdentifier, isMain: Bool) -> Int {
    if isMain { return 0 }
    if let worker = workers[thread] { return worker }
    workers[thread] = workers.count + 1
    return workers.count
  }
}
