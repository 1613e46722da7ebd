import Foundation

extension OperationTracer {
  /// The recorded lifecycle of one operation. Times are measured from the creation of the tracer.
  public struct Record: Sendable, Hashable, Identifiable {
    var node: OperationGraph.Node
    /// The index in ``OperationTracer/records``.
    public var id: Int { node.id }
    /// The name of the operation when tracing began, or of its type if it had no name.
    public var name: String { node.name }
    /// Whether other operations run inside this one.
    public var isGroup: Bool { node.isGroup }
    /// The index of the record of the enclosing operation, or nil if there is none.
    public var group: Int? { node.group }
    /// The indices of the traced dependencies.
    public var dependencies: [Int] { node.dependencies }
    /// The time when tracing began. For a member of a traced group, this is the time when the member was added.
    public let created: Duration
    /// The time when a method of this package added the operation to a queue, or nil if that was before tracing began.
    public internal(set) var enqueued: Duration?
    /// The time when the operation began to wait for its keys, or nil if it did not wait for keys.
    public internal(set) var requestedKeys: Duration?
    /// The times in which the operation waited for its keys again after a pause, such as a retry between two attempts.
    public internal(set) var laterKeyWaits: [Range<Duration>] = []
    /// The start of such a wait that has not ended.
    var openKeyWait: Duration?
    /// The times between two attempts of a retry, or two iterations of a repetition. The last one may not have ended.
    var pauses: [Range<Duration>] = []
    var openPause: Duration?
    /// The time when all dependencies had finished and all keys were granted.
    public internal(set) var ready: Duration?
    /// The time when execution started, or nil if the operation never executed.
    public internal(set) var started: Duration?
    /// The time when `execute()` returned, or nil if the operation finished before.
    public internal(set) var executeReturned: Duration?
    /// The time when the operation finished, or when the group of an asynchronous Foundation operation was notified.
    public internal(set) var finished: Duration?
    /// The time when the operation was cancelled, or when tracing began if that was later. For a plain Foundation
    /// operation, the time when its group was notified.
    public internal(set) var cancelled: Duration?
    /// The latest state.
    public var state: OperationGraph.Node.State { node.state }
    /// The description of the first error.
    public internal(set) var error: String?
    /// A number for the thread on which execution started. 0 is the main thread.
    public internal(set) var thread: Int?
    /// The name of the queue on which execution started. Nil for an operation that runs inside another one.
    public internal(set) var queue: String?

    /// Records the state at the moment tracing begins. An event that has been recorded already takes precedence.
    mutating func recordState(_ now: Duration, _ phase: OperationLifecycle.Phase, isReady: Bool, isCancelled: Bool) {
      if isReady, requestedKeys == nil { ready = ready ?? now }
      if phase.isExecuting { started = started ?? now }
      if isCancelled { cancelled = cancelled ?? now }
      if state == .pending { node.state = isCancelled ? .cancelled : phase.isExecuting ? .executing : .pending }
    }

    mutating func beginKeyWait(_ now: Duration) {
      if started != nil {
        openKeyWait = openKeyWait ?? now
      } else {
        requestedKeys = requestedKeys ?? now
        ready = nil
      }
    }

    mutating func endKeyWait(_ now: Duration) {
      if started == nil { ready = now }
      // A new array, because readers may share the old one.
      laterKeyWaits = keyWaitsAfterPauses(until: now)
      openKeyWait = nil
    }

    mutating func beginPause(_ now: Duration) { openPause = now }

    mutating func endPause(_ now: Duration) {
      pauses = pauses(until: now)
      openPause = nil
    }

    func pauses(until now: Duration) -> [Range<Duration>] { pauses + (openPause.map { [$0..<max($0, now)] } ?? []) }

    func keyWaitsAfterPauses(until now: Duration) -> [Range<Duration>] {
      laterKeyWaits + (openKeyWait.map { [$0..<max($0, now)] } ?? [])
    }

    /// The execution time, or nil if the operation never executed or has not finished.
    public var duration: Duration? { finished.flatMap { end in started.map { end - $0 } } }
  }
}

extension OperationGraph {
  init(_ records: [OperationTracer.Record]) {
    self = OperationGraph(records.map(\.node)).withDurations { records[$0.id].duration }
  }
}

/// Records the lifecycle events of an operation in a tracer, without a lock held, on the thread where they occur.
struct OperationFollower: Sendable {
  let tracer: OperationTracer
  let index: Int

  private func note<Result>(_ change: (inout OperationTracer.Record, _ now: Duration) -> Result) -> Result {
    let now = tracer.now
    return tracer.log.withLock { change(&$0.records[index], now) }
  }

  func noteEnqueuing() { note { record, now in record.enqueued = now } }

  func noteKeyWait() { note { record, now in record.beginKeyWait(now) } }

  /// The dependencies have finished, and it is the operation's turn. Not called if it was ready from the start.
  func noteTurn() { note { record, now in record.endKeyWait(now) } }

  /// An attempt has ended, and another one follows.
  func notePause() { note { record, now in record.beginPause(now) } }

  func noteEndOfPause() { note { record, now in record.endPause(now) } }

  func noteStart() {
    let (thread, isMain, now) = (ObjectIdentifier(Thread.current), DispatchQueue.isMainCurrent, tracer.now)
    let queue = OperationQueue.current?.givenName
    let (name, hasEnded) = tracer.log.withLock { log in
      let end = log.records[index].finished
      log.records[index].started = min(now, end ?? now)
      log.records[index].thread = log.number(of: thread, isMain: isMain)
      if log.records[index].group == nil { log.records[index].queue = queue }
      if end == nil { log.records[index].node.state = .executing }
      return (log.records[index].name, end != nil)
    }
    // Another thread may have finished the operation at the moment of its start.
    if !hasEnded { Signposts.begin(index, of: ObjectIdentifier(tracer), name) }
  }

  /// `execute()` has returned. The work may continue, or have ended.
  func noteReturn() { note { record, now in if record.finished == nil { record.executeReturned = now } } }

  func noteCancellation() {
    note { record, now in
      record.cancelled = now
      // Another thread may have ended the operation meanwhile.
      if record.finished == nil { record.node.state = .cancelled }
    }
  }

  /// The operation runs these members inside it from now on. May be called twice for the same members.
  func noteMembers(_ members: [AsyncOperation]) { tracer.trace(members, inside: index) }

  /// The work has ended, or will not run. The errors are complete, and the end has not been announced yet.
  func noteEnd(of operation: AsyncOperation) {
    // The operation is about to release its dependencies.
    tracer.noteDependencies(of: operation)
    let (isCancelled, error) = (operation.isCancelled, operation.errors.first.map { describe($0) })
    let hasStarted = note { record, now in
      record.finished = now
      if record.started != nil { record.endKeyWait(now) }
      record.endPause(now)
      record.error = error
      record.node.state = error != nil ? .failed : isCancelled ? .cancelled : .finished
      return record.started != nil
    }
    if hasStarted { Signposts.end(index, of: ObjectIdentifier(tracer)) }
  }
}

extension [OperationTracer.Record] {
  /// The index of the record, and of those in which it is nested, innermost first.
  func nesting(of index: Int) -> some Sequence<Int> { sequence(first: index) { self[$0].group } }
}
