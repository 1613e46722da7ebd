/// What Foundation on Linux keeps about an operation, as far as it decides when that is run.
struct FoundationBooks: Hashable {
  enum Place: Hashable {
    case outside
    case enqueued
    /// The queue has decided to run it.
    case dispatched
    case finished
  }

  struct Gate: Hashable {
    var isOpen = false
    /// It will tell the operation.
    var isWaitedFor = false
  }

  var place = Place.outside
  /// It has a queue, which is told when it becomes ready. That comes before the place in it.
  var hasQueue = false
  var isCancelled = false
  /// How many of its own dependencies, here gates, are not open.
  var unfinished = 0
  /// What `isReady` answered when the answer was noted last: this is what the queue goes by.
  var isReadyNoted = true
  var gates: [Gate] = []

  /// Foundation's own `isReady`.
  var isReady: Bool { unfinished == 0 }
}
