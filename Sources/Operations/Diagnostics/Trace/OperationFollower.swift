import Foundation

/// Reports the lifecycle events of one operation to a tracer.
final class OperationFollower: OperationTrace, @unchecked Sendable {
  let tracer: OperationTracer
  let index: Int

  init(_ tracer: OperationTracer, _ index: Int) {
    self.tracer = tracer
    self.index = index
  }

  private func note<Result>(_ change: (inout OperationTracer.Record, _ now: Duration) -> Result) -> Result {
    let now = tracer.now
    return tracer.log.withLock { change(&$0[index], now) }
  }

  override func handle(_ event: Event) {
    switch event {
    case .enqueued: note { record, now in record.enqueued = now }
    case .waitsForPermit: note { record, now in record.requestedKeys = record.requestedKeys ?? now }
    case .ready: note { record, now in if record.started == nil { record.ready = now } }
    case .started: noteStart()
    case .executionReturned: note { record, now in if record.finished == nil { record.returned = now } }
    case .cancelled: note { record, now in (record.cancelled, record.state) = (now, .cancelled) }
    case .ended(let operation): noteEnd(of: operation)
    case .gained(let members): tracer.trace(members, inside: index)
    }
  }

  private func noteStart() {
    let (thread, isMain, now) = (ObjectIdentifier(Thread.current), MainQueue.isCurrent, tracer.now)
    let queue = OperationQueue.current.flatMap { StallPlace.queue($0).name }
    let (name, hasEnded) = tracer.log.withLock { log in
      let end = log[index].finished
      (log[index].started, log[index].worker) = (min(now, end ?? now), log.worker(thread, isMain: isMain))
      if log[index].group == nil { log[index].queue = queue }
      if end == nil { log[index].state = .executing }
      return (log[index].name, end != nil)
    }
    // Another thread may have finished the operation at the moment of its start.
    if !hasEnded { Signposts.begin(index, of: ObjectIdentifier(tracer), name) }
  }

  /// Records the finish in this tracer only.
  func noteEnd(of operation: Operation) {
    // The operation will release its dependencies.
    tracer.noteDependencies(of: operation)
    let own = operation as? AsyncOperation
    let (isCancelled, error) = (operation.isCancelled, own?.errors.first.map { describe($0) })
    let hasStarted = note { record, now in
      record.finished = now
      record.error = error
      record.state = error != nil ? .failed : isCancelled ? .cancelled : .finished
      return record.started != nil
    }
    if hasStarted { Signposts.end(index, of: ObjectIdentifier(tracer)) }
  }

  override func trace(of member: Operation) -> OperationTrace? {
    let others = super.trace(of: member)
    guard let index = tracer.index(of: member) else { return others }
    let follower = OperationFollower(tracer, index)
    follower.next = others
    return follower
  }
}
