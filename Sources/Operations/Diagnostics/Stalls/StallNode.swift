import Foundation

struct StallNode {
  enum Subject {
    /// The start of an operation that has members, or the end of any operation.
    case operation(Operation, isStart: Bool = false)
    case slots(of: StallPlace)
    case key(KeyTable.Obstacle)
    /// A task that holds its keys, or waits for them as a claimant.
    case task(name: String, waitsAs: KeyClaimant?)
  }

  typealias Wait = WaitSnapshot.Wait

  /// The reason why a node that waits for no other node has not finished.
  struct Reason {
    let cause: StallReport.Cause
    /// How unlikely the cause is to end by itself.
    let rank: Int
    /// The rest of a sentence that begins with the name of the operation.
    let predicate: String

    private init(_ cause: StallReport.Cause, rank: Int, _ predicate: String) {
      (self.cause, self.rank, self.predicate) = (cause, rank, predicate)
    }

    /// The operation is in no known queue or group. That is certain if Foundation has never checked its readiness.
    static func notEnqueued(_ operation: Operation, isCertain: Bool) -> Self {
      if isCertain { return Self(.notEnqueued, rank: 9, "was never added to a queue or a group") }
      let guess =
        operation is AsyncOperation
        ? "was added to no queue or group by the package's methods: unless it was added by Foundation's, it"
        : "is a plain Foundation operation in none of the searched queues: unless it was added to another one, it"
      return Self(.notEnqueued, rank: 6, guess + " never starts")
    }

    static func suspended(_ place: StallPlace) -> Self {
      Self(.suspended, rank: 8, "cannot start because \(place.description) is suspended")
    }

    static func hasNoSlots(_ place: StallPlace) -> Self {
      Self(.suspended, rank: 8, "cannot start because maxConcurrentOperationCount of \(place.description) is 0")
    }

    static func waitsForMembers(isSuspended: Bool) -> Self {
      isSuspended
        ? Self(.suspended, rank: 8, "is suspended, and waits for members")
        : Self(.executing, rank: 3, "stays open, and waits for members")
    }

    static func notReady(_ operation: Operation) -> Self {
      // `isReady` is final in an `AsyncOperation`.
      let guess =
        operation is AsyncOperation
        ? "perhaps a barrier block is before it" : "its isReady is overridden, or a barrier block is before it"
      return Self(.notReady, rank: 7, "is not ready, though all it depends on has finished: \(guess)")
    }

    static func condition(_ name: String, for elapsed: Duration?) -> Self {
      let time = elapsed.map { ", for \($0.reading) so far" } ?? ""
      let predicate = "has not started because its condition “\(name.inOneLine)” is being evaluated"
      return Self(.condition, rank: 3, predicate + time)
    }

    static func executing(_ operation: Operation, for elapsed: Duration?, isCancelled: Bool) -> Self {
      var predicate = "is executing (Foundation does not record since when)"
      if let elapsed {
        predicate = "has been executing for \(elapsed.reading), and has not finished"
        // Below 10 ms, the clock is too coarse.
        if elapsed < .milliseconds(10) { predicate = "has just begun to execute" }
        let mayHaveForgotten = (operation as? AsyncOperation)?.finishesByItself == false
        let remedy = ". If its work has ended, call `finish` on every path"
        if elapsed >= .seconds(1), mayHaveForgotten { predicate += remedy }
      }
      return Self(.executing, rank: 3, (isCancelled ? "was cancelled, but " : "") + predicate)
    }

    static func backingOff(before next: String, remaining: Duration) -> Self {
      let time = remaining > .zero ? "in \(remaining.reading)" : "now"
      return Self(.backingOff, rank: 2, "waits for \(next), which begins \(time)")
    }

    static func restrained(by restraint: KeyRestraint) -> Self {
      let endsByItself = if case .limit = restraint { false } else { true }
      return Self(.exclusivity, rank: endsByItself ? 2 : 8, "waits for its turn under \(restraint.description)")
    }

    static func starting(in place: StallPlace) -> Self {
      let isMain = place.id == ObjectIdentifier(OperationQueue.main)
      let thread = isMain ? "the main thread gets to it" : "there is a thread for \(place.description)"
      return Self(.transitioning, rank: 1, "is about to start, as soon as \(thread)")
    }

    /// A task does not record since when it holds its keys.
    static let running = Self(.executing, rank: 3, "is running")
    static let starting = Self(.transitioning, rank: 1, "is about to start")
    static let ending = Self(.transitioning, rank: 0, "is about to finish")
  }

  let subject: Subject
  var waits: [Wait] = []
  /// The number of waits that must end, or nil if all of them must.
  var needed: Int?
  var reason = Reason.ending
  var place: StallPlace?
  /// The time that the operation has spent in its current phase, or nil if it has not started.
  var elapsed: Duration?
  var stamp = WaitSnapshot.Stamp()

  var operation: Operation? { if case .operation(let operation, _) = subject { operation } else { nil } }
}

/// The queue or the group that provides the slots of an operation.
enum StallPlace {
  case queue(OperationQueue)
  case group(GroupOperation)

  var id: ObjectIdentifier {
    switch self {
    case .queue(let queue): ObjectIdentifier(queue)
    case .group(let group): ObjectIdentifier(group)
    }
  }

  var name: String? {
    switch self {
    case .group(let group): group.displayName
    case .queue(let queue): queue.givenName
    }
  }

  var description: String {
    switch self {
    case .group(let group): "the group \(group.shownName)"
    case .queue(.main): "the main queue"
    case .queue: name.map { "the queue “\($0.inOneLine)”" } ?? "its queue"
    }
  }

  /// The limit is negative if any number of operations can execute at once.
  var slots: (isSuspended: Bool, limit: Int, operations: [Operation]) {
    switch self {
    case .queue(let queue): (queue.isSuspended, queue.maxConcurrentOperationCount, queue.operations)
    case .group(let group) where group.engine.isDraining: (false, -1, group.members)
    case .group(let group): (group.isSuspended, group.maxConcurrentOperationCount, group.members)
    }
  }
}
