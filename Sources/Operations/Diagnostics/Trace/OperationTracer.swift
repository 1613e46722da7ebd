public import Foundation

/// Follows operations through their life, to show afterwards who ran when and where, and who waited for what.
///
/// ```swift
/// let tracer = OperationTracer()
/// tracer.trace(importer)                          // a group: its members, too, and those that are added later
/// try await queue.run(importer)
/// try tracer.chromeTrace().write(to: file)        // for ui.perfetto.dev, or chrome://tracing
/// print(tracer.timeline())                        // the same in a terminal
/// print(tracer.summary)
/// ```
///
/// Attach it before the operation runs; what has been before is not known. It costs a lock and a look at the clock for
/// each station of an operation that is followed, and others nothing. It keeps no operation alive, and what it has
/// recorded as long as it lives. On Apple's platforms every execution is a signpost interval, too (subsystem
/// `Operations`), for Instruments.
///
/// It may be asked at any moment from any thread: an operation that is executing has no end yet.
public final class OperationTracer: Sendable {
  private let time: ElapsedTime
  let log = Locked(TraceLog())

  /// - Parameter clock: What times are read from. A test may set one that it moves by hand.
  public init(clock: any Clock<Duration> = ContinuousClock()) { time = ElapsedTime(clock) }

  /// How long ago the tracer was made.
  var now: Duration { time.now }

  /// Begins to follow an operation; of one that others run inside of, a group or one that tries again, also those,
  /// whenever they are added. Once: a second call does nothing. What it depends on is followed only if it is traced,
  /// too.
  public func trace(_ operation: AsyncOperation) { trace([operation], inside: nil) }

  /// Begins to follow several operations.
  public func trace(_ operations: [AsyncOperation]) { trace(operations, inside: nil) }

  /// Begins to follow an operation that is run by another one, which is neither a group nor known to run it: a group
  /// that the other starts in its `execute()`, say. It is drawn inside the other, which is followed, too.
  public func trace(_ operation: AsyncOperation, inside outer: AsyncOperation) {
    trace(outer)
    guard let index = index(of: outer) else { return }
    log.withLock { $0[index].isGroup = true }
    trace([operation], inside: index)
  }

  /// Begins to follow every operation that the package's methods add to `queue` from now on.
  ///
  /// These methods are `addOperation` and `addOperations` for an ``AsyncOperation``, `addGraph`, `addTask` and `run`. An
  /// operation that Foundation's own method adds, by its static type `Operation`, is not followed, nor is a plain
  /// Foundation operation.
  ///
  /// What is recorded grows with every operation, so trace a queue for a while: it is followed as long as the tracer
  /// lives. Neither keeps the other alive.
  public func trace(_ queue: OperationQueue) { QueueFollowers.add(self, to: queue) }

  /// All of them, in the order in which they came to be followed, as far as they have come. Each one's `id` is its
  /// index.
  public var records: [Record] { log.withLock { $0.records } }

  /// The operations as a graph, with how long each has executed: to draw it, or to see what decides how long it takes.
  ///
  /// The arrows are those that there were when an operation came to be followed and when it ended, between operations
  /// that are followed.
  public var graph: OperationGraph { OperationGraph(records) }

  // MARK: Following

  func trace(_ operations: [Operation], inside group: Int?) {
    var toFollow = operations.map { (operation: $0, group: group) }
    var done = 0
    while done < toFollow.count {
      let (operation, group) = toFollow[done]
      done += 1
      guard let own = operation as? AsyncOperation else {
        follow(plain: operation, inside: group)
        continue
      }
      guard let index = follow(own, inside: group) else { continue }
      // Later ones are told of by the group.
      for member in own.shownMembers { toFollow.append((member, index)) }
    }
    for (operation, _) in toFollow { noteDependencies(of: operation) }
  }

  /// - Returns: Its index. Nil if it is followed already.
  private func follow(_ operation: AsyncOperation, inside group: Int?) -> Int? {
    let (name, isGroup) = (operation.displayName, operation.runsOthersInside)
    return once(operation, inside: group) {
      let now = now
      let follower = OperationFollower(self, log.withLock { $0.add(name, isGroup: isGroup, inside: group, now) })
      let (phase, isReady, isCancelled) = operation.core.withLock { core in
        follower.next = core.makeExtras().exchange(\.trace, follower)
        return (core.lifecycle.phase, core.ledger.remaining == 0, core.lifecycle.isCancelled)
      }
      log.withLock { log in
        // Unless it has been told of something since.
        log[follower.index].noteHowItIs(
          now,
          isReady: isReady,
          isExecuting: phase == .executing,
          isCancelled: isCancelled
        )
      }
      if phase == .ending || phase == .finished { follower.noteEnd(of: operation) }
      return follower.index
    }
  }

  private func follow(plain operation: Operation, inside group: Int?) {
    let (name, isReady) = (operation.displayName, operation.unfinishedDependencies.isEmpty)
    let isExecuting = operation.isExecuting
    _ = once(operation, inside: group) {
      let now = now
      return log.withLock { log in
        let index = log.add(name, isGroup: false, inside: group, now)
        log[index].noteHowItIs(now, isReady: isReady, isExecuting: isExecuting, isCancelled: false)
        log.note(plain: operation, index)
        return index
      }
    }
  }

  /// Calls `body` unless the operation is followed, or another thread is just beginning to.
  private func once(_ operation: Operation, inside group: Int?, _ body: () -> Int) -> Int? {
    guard log.withLock({ $0.begin(operation) }) else { return nil }
    defer { log.withLock { $0.hasBegun(operation) } }
    guard let index = index(of: operation) else { return body() }
    // It was followed before it was put into this group.
    if let group { log.withLock { $0.put(index, inside: group) } }
    return nil
  }

  func index(of operation: Operation) -> Int? {
    guard let own = operation as? AsyncOperation else { return log.withLock { $0.index(ofPlain: operation) } }
    var trace = own.trace
    while let follower = trace as? OperationFollower {
      if follower.tracer === self { return follower.index }
      trace = follower.next
    }
    return nil
  }

  func noteDependencies(of operation: Operation) {
    guard let index = index(of: operation) else { return }
    let dependencies = operation.dependencies.compactMap { self.index(of: $0) }
    if dependencies.isEmpty { return }
    log.withLock { log in
      let known = Set(log[index].dependencies)
      log[index].dependencies += dependencies.filter { !known.contains($0) }
    }
  }
}

extension OperationTracer: QueueFollower {
  func queueDidClaim(_ operation: AsyncOperation) { trace(operation) }
}
