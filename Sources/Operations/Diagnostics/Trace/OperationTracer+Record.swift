extension OperationTracer {
  /// What a tracer recorded about one operation. Times are measured from the creation of the tracer.
  public struct Record: Sendable, Hashable, Identifiable {
    /// The index in ``OperationTracer/records``.
    public let id: Int
    /// The name of the operation when tracing began, or of its type if it had no name.
    public let name: String
    /// Whether other operations run inside this one.
    public internal(set) var isGroup: Bool
    /// The index of the record that the operation runs inside.
    public internal(set) var group: Int?
    /// The indices of the traced dependencies.
    public internal(set) var dependencies: [Int] = []
    /// When tracing began, which for a member of a traced group is when it was added.
    public let created: Duration
    /// When a method of this package added the operation to a queue, or nil if that was before tracing began.
    public internal(set) var enqueued: Duration?
    /// When the operation began to wait for its keys, or nil if it did not wait for keys.
    public internal(set) var requestedKeys: Duration?
    /// When the operation became ready, including its keys.
    ///
    /// For a plain Foundation operation this is recorded only if it was ready when tracing began.
    public internal(set) var ready: Duration?
    /// When execution started, or nil if the operation never executed.
    public internal(set) var started: Duration?
    /// When `execute()` returned, or nil if the work finished before that.
    public internal(set) var returned: Duration?
    /// When the work finished. For an asynchronous Foundation operation, when the group was notified of it.
    public internal(set) var finished: Duration?
    /// When the operation was cancelled, or when tracing began if that was later. Not recorded for a plain Foundation
    /// operation.
    public internal(set) var cancelled: Duration?
    /// The latest state.
    public internal(set) var state = OperationGraph.Node.State.pending
    /// The description of the first error.
    public internal(set) var error: String?
    /// A number for the thread on which execution started. 0 is the main thread.
    public internal(set) var worker: Int?
    /// The name of the queue on which execution started, unless it belongs to a group.
    public internal(set) var queue: String?

    init(_ id: Int, _ name: String, _ isGroup: Bool, _ group: Int?, _ created: Duration) {
      (self.id, self.name, self.isGroup, self.group, self.created) = (id, name, isGroup, group, created)
    }

    /// Records the state at the moment tracing begins, unless a later event has been recorded already.
    mutating func noteHowItIs(_ now: Duration, isReady: Bool, isExecuting: Bool, isCancelled: Bool) {
      if isReady { ready = ready ?? now }
      if isExecuting { started = started ?? now }
      if isCancelled { cancelled = cancelled ?? now }
      if state == .pending { state = isCancelled ? .cancelled : isExecuting ? .executing : .pending }
    }

    /// How long the operation executed, or nil if it never executed or has not finished.
    public var duration: Duration? { finished.flatMap { end in started.map { end - $0 } } }
  }
}

extension OperationGraph {
  init(_ records: [OperationTracer.Record]) { self.init(records.map { Node($0) }) }
}

extension OperationGraph.Node {
  fileprivate init(_ record: OperationTracer.Record) {
    self.init(id: record.id, name: record.name, state: record.state, isGroup: record.isGroup)
    (group, dependencies, duration) = (record.group, record.dependencies, record.duration)
  }
}
