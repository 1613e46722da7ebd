import Foundation

extension StallNode {
  /// The execution time after which an operation may have forgotten to call `finish()`.
  private static let longExecution = Duration.seconds(1)
  /// The execution time below which no time is reported, because the clock is too coarse.
  private static let shortExecution = Duration.milliseconds(10)

  /// The predicate of the sentence about a node that waits for no other node.
  var ownPredicate: String {
    let own = operation as? AsyncOperation
    let isPlain = operation != nil && own == nil
    switch obstacle ?? .ending {
    case .notEnqueued(isCertain: true): return "was never added to a queue or a group"
    case .notEnqueued where isPlain:
      return
        "is a plain Foundation operation in none of the searched queues: unless it was added to "
        + "another one, it never starts"
    case .notEnqueued:
      return
        "was added to no queue or group by the package's methods: unless it was added by Foundation's, it never "
        + "starts"
    case .suspended(let place): return "cannot start because \(place.description) is suspended"
    case .hasNoSlots(let place): return "cannot start because maxConcurrentOperationCount of \(place.description) is 0"
    case .waitsForMembers(let isSuspended):
      return "\(isSuspended ? "is suspended" : "stays open"), and waits for members"
    case .notReady where isPlain:
      return
        "is not ready, though all it depends on has finished: its isReady is overridden, or a barrier block is before it"
    case .notReady: return "is not ready, though all it depends on has finished: perhaps a barrier block is before it"
    case .condition(let name):
      return "has not started because its condition “\(name.inOneLine)” is being evaluated"
        + (elapsed.map { ", for \($0.reading) so far" } ?? "")
    case .executing: return (stamp.isCancelled ? "was cancelled, but " : "") + executing(own)
    case .throttled(let key): return "waits for its turn under the throttled key \(key.quoted)"
    case .backingOff(let next, let remaining):
      return "waits for \(next), which begins \(remaining > .zero ? "in \(remaining.reading)" : "now")"
    case .starting(.queue(.main)?): return "is about to start, as soon as the main thread comes to it"
    case .starting(let place?): return "is about to start, as soon as there is a thread for \(place.description)"
    case .starting(nil): return "is about to start"
    case .ending: return "is about to finish"
    }
  }

  private func executing(_ own: AsyncOperation?) -> String {
    guard let elapsed else { return "is executing (Foundation does not record since when)" }
    if elapsed < Self.shortExecution { return "has just begun to execute" }
    let mayHaveForgotten = elapsed >= Self.longExecution && own?.finishesByItself == false
    let guess = mayHaveForgotten ? ": perhaps it never calls finish()" : ""
    return "has been executing for \(elapsed.reading), and has not finished" + guess
  }
}
