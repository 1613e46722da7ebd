public import Foundation

/// A recorder of the lifecycle events of operations.
///
/// The records show when and where the operations ran, and what they waited for.
///
/// ```swift
/// let tracer = OperationTracer()
/// tracer.trace(importer)                          // a group, its members, and members added later
/// try await queue.run(importer)
/// try tracer.chromeTrace().write(to: file)        // for ui.perfetto.dev, or chrome://tracing
/// print(tracer.timeline())                        // the same in a terminal
/// print(tracer.summary)
/// ```
///
/// Attach a tracer before the operations run, because it does not record earlier events. The tracer keeps its records
/// as long as it lives, and keeps no operation alive. On Apple's platforms every execution is also a signpost interval
/// for Instruments, in the subsystem `Operations`.
///
/// ## Threads
///
/// A tracer can be read at any time from any thread. An operation that is executing has no finish time yet.
///
/// ## Cost
///
/// Each lifecycle event of a traced operation costs a lock and a reading of the clock. Other operations cost nothing.
public final class OperationTracer: Sendable {
  private let time: ElapsedTime
  let log = Locked(TraceLog())

  /// Creates a tracer.
  ///
  /// - Parameter clock: The clock from which times are read. Tests can pass a manual clock.
  public init(clock: any Clock<Duration> = ContinuousClock()) { time = ElapsedTime(clock) }

  var now: Duration { time.now }

  /// Starts to trace an operation.
  ///
  /// The tracer also traces the operations that run inside this one, as in a group or a retry, whenever they are added.
  /// It traces dependencies only if you pass them to `trace`. Tracing an operation again does nothing.
  public func trace(_ operation: AsyncOperation) { trace([operation], inside: nil) }

  /// Starts to trace several operations.
  public func trace(_ operations: [AsyncOperation]) { trace(operations, inside: nil) }

  /// Starts to trace an operation that runs inside another one.
  ///
  /// Use this method if the tracer cannot detect that `outer` runs the operation, for example because `outer` starts a
  /// group in its `execute()`. Drawings show the operation inside `outer`, which is also traced.
  ///
  /// - Precondition: `outer` is another operation, and is not traced inside this one.
  public func trace(_ operation: AsyncOperation, inside outer: AsyncOperation) {
    trace(outer)
    trace([operation], inside: log.withLock { $0.index(of: outer) })
  }

  /// Starts to trace every operation that the package's methods add to `queue` from now on.
  ///
  /// These methods are `addOperation` and `addOperations` for an ``AsyncOperation``, `addGraph`, `addTask`, `run`,
  /// `results`, `first` and `withSlot`. An ``AsyncOperation`` with the static type `Operation` is added by Foundation's
  /// own method, and is not traced. Plain Foundation operations are not traced either.
  ///
  /// The queue is traced as long as the tracer lives, and every operation adds a record, so trace a queue only for a
  /// while. The tracer and the queue do not keep each other alive.
  public func trace(_ queue: OperationQueue) {
    QueueFollowers.add(self, to: queue) { [weak self] operation in self?.trace(operation) }
  }

  /// The records of the traced operations, in the order in which tracing them began.
  ///
  /// The `id` of each record is its index. A record contains the events so far.
  public var records: [Record] {
    // A copy in new storage, because ThreadSanitizer does not detect that readers have released shared storage.
    log.withLock { log in log.records.map { $0 } }
  }

  /// The traced operations as a graph with the duration of each execution, for a drawing or the critical path.
  ///
  /// The graph contains a dependency between two traced operations if the dependency existed when tracing the dependent
  /// operation began, or when the dependent operation finished.
  public var graph: OperationGraph { OperationGraph(records) }

  func trace(_ operations: [AsyncOperation], inside group: Int?) {
    var toFollow = operations.map { (operation: $0, group: group) }
    var done = 0
    while done < toFollow.count {
      let (operation, group) = toFollow[done]
      done += 1
      guard let index = follow(operation, inside: group) else { continue }
      // The group reports the members that are added later.
      for member in operation.groupInside?.members ?? [] { toFollow.append((member, index)) }
    }
    for (operation, _) in toFollow { noteDependencies(of: operation) }
  }

  /// Returns the index of the new record, or nil if the operation has a record.
  private func follow(_ operation: AsyncOperation, inside group: Int?) -> Int? {
    let (now, name, isGroup) = (now, operation.displayName, operation.runsOthersInside)
    let (newIndex, outerName) = log.withLock { log -> (Int?, String?) in
      if let group { log.records[group].node.isGroup = true }
      if let index = log.index(of: operation) {
        if let group, log.records.nesting(of: group).contains(index) { return (nil, log.records[group].name) }
        // The operation was traced before it was added to this group.
        log.records[index].node.group = log.records[index].group ?? group
        return (nil, nil)
      }
      let index = log.records.count
      let node = OperationGraph.Node(id: index, name: name, state: .pending, isGroup: isGroup, group: group)
      log.records.append(Record(node: node, created: now))
      log.operations.append(WeakOperation(operation))
      log.indices[ObjectIdentifier(operation)] = index
      return (index, nil)
    }
    if let outerName {
      misuse(
        "\(operation.quotedName) cannot be traced inside “\(outerName)”, which is the same operation or runs inside it. "
          + "Pass the operation that runs the other one as the outer."
      )
    }
    guard let index = newIndex else { return nil }
    let follower = OperationFollower(tracer: self, index: index)
    let (phase, isReady, isCancelled) = operation.core.withLock { core in
      // A new array, because readers may share the old one.
      let extras = core.makeExtras()
      extras.trace = extras.trace + [follower]
      return (core.lifecycle.phase, core.ledger.remaining == 0, core.lifecycle.isCancelled)
    }
    log.withLock { $0.records[index].recordState(now, phase, isReady: isReady, isCancelled: isCancelled) }
    if phase.isOver { follower.noteEnd(of: operation) }
    return index
  }

  func noteDependencies(of operation: AsyncOperation) {
    let dependencies = operation.dependencies.compactMap(\.asMember)
    if dependencies.isEmpty { return }
    log.withLock { log in
      guard let index = log.index(of: operation) else { return }
      let known = Set(log.records[index].dependencies)
      let new = dependencies.compactMap { log.index(of: $0) }.filter { !known.contains($0) }
      // A new array, because readers may share the old one.
      if !new.isEmpty { log.records[index].node.dependencies = log.records[index].dependencies + new }
    }
  }
}

struct TraceLog {
  var records: [OperationTracer.Record] = []
  var operations: [WeakOperation] = []
  var indices: [ObjectIdentifier: Int] = [:]
  private var threads: [ObjectIdentifier: Int] = [:]

  /// The caller holds the operation. A released operation may have had the same identity.
  func index(of operation: AsyncOperation) -> Int? {
    indices[ObjectIdentifier(operation)].flatMap { operations[$0].operation === operation ? $0 : nil }
  }

  mutating func number(of thread: ObjectIdentifier, isMain: Bool) -> Int {
    if isMain { return 0 }
    if let number = threads[thread] { return number }
    threads[thread] = threads.count + 1
    return threads.count
  }
}
