extension OperationTracer {
  /// What is known of one operation. Times are counted from when the tracer was made.
  public struct Record: Sendable, Hashable, Identifiable {
    /// Its index in ``OperationTracer/records``.
    public let id: Int
    /// The operation's name when it came to be followed, or its type's if it had none.
    public let name: String
    /// Whether it is one that others run inside of.
    public internal(set) var isGroup: Bool
    /// What it runs inside of.
    public internal(set) var group: Int?
    /// The operations it waited for, as far as they are followed.
    public internal(set) var dependencies: [Int] = []
    /// When it came to be followed: a member when it was added.
    public let created: Duration
    /// When it was added to a queue by the toolkit's verbs. Nil if that was before it came to be followed.
    public internal(set) var enqueued: Duration?
    /// When nothing was waited for any more, keys included. Of a plain Foundation operation only known if that was so
    /// from the start.
    public internal(set) var ready: Duration?
    /// When execution began. Nil if it never has.
    public internal(set) var started: Duration?
    /// When `execute()` returned. Nil if it has not, or if the work had ended before.
    public internal(set) var returned: Duration?
    /// When the work had ended. Of a plain Foundation operation that goes on after its `start()`, when that was heard
    /// of.
    public internal(set) var finished: Duration?
    /// When it was cancelled, or came to be followed if that was later. Not known of a plain Foundation operation.
    public internal(set) var cancelled: Duration?
    /// How it is, or ended.
    public internal(set) var state = OperationGraph.Node.State.pending
    /// The first of its errors, in words.
    public internal(set) var error: String?
    /// The thread on which execution began: equal numbers are equal threads. 0 is the main thread.
    public internal(set) var worker: Int?
    /// The name of the queue on which execution began, unless it is that of a group.
    public internal(set) var queue: String?

    init(_ id: Int, _ name: String, _ isGroup: Bool, _ group: Int?, _ created: Duration) {
      (self.id, self.name, self.isGroup, self.group, self.created) = (id, name, isGroup, group, created)
    }

    /// When it comes to be followed. What has been noted already is newer.
    mutating func noteHowItIs(_ now: Duration, isReady: Bool, isExecuting: Bool, isCancelled: Bool) {
      if isReady { ready = ready ?? now }
      if isExecuting { started = started ?? now }
      if isCancelled { cancelled = cancelled ?? now }
      if state == .pending { state = isCancelled ? .cancelled : isExecuting ? .executing : .pending }
    }

    /// How long it executed. Nil if it never has, or has not finished.
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
