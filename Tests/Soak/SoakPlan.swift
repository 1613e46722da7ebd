import Operations

/// A world and everything that is done to it, made from a seed: the same for the same seed, on every machine.
///
/// Only the threads decide the order. Everything in a plan can finish, whatever the threads do:
///
/// - An operation waits for earlier items only, where a group's end comes after its members. So there are no cycles.
/// - The members of an *open* group may wait for operations outside of it. It takes no limited slot and no key, because
///   the operations outside might wait for those. A *closed* group may take both.
/// - Only single operations take keys of more than one domain, because cycles through two domains are not noticed.
/// - Plain operations take no keys.
struct SoakPlan: Sendable {
  /// When the last actions are carried out.
  static let ticks = 60
  static let domains = 2
  static let keys = ["a", "b", "c", "d", "e"]

  let seed: UInt64
  var generator: SeededGenerator
  /// Negative for no limit. The first two have none.
  let queueLimits: [Int]
  var items: [SoakItem] = []
  var actions: [(tick: Int, deed: SoakDeed)] = []
  var homes = Array(repeating: SoakHomePlan(), count: 4)
  /// The events of each producer, with the homes that they are for.
  var producers: [[(home: Int, event: SoakEvent)]] = []
  /// The operations outside of groups, by the thread that enqueues them and in its order.
  var enqueuers: [[Int]] = [[], [], []]

  init(seed: UInt64) {
    self.seed = seed
    generator = SeededGenerator(seed: seed)
    queueLimits = [-1, -1, 1, generator.number(2...4)]
    makeItems()
    makeActions()
    makeSchedulers()
    makeEnqueuers()
  }

  mutating func one(of count: Int) -> Bool { generator.one(of: count) }

  mutating func number(_ range: ClosedRange<Int>) -> Int { generator.number(range) }

  /// The groups around an item, from the innermost outwards.
  func outer(of index: Int) -> [Int] { items[index].outer.map { [$0] + outer(of: $0) } ?? [] }

  func members(of group: Int) -> [SoakItem] { items[(group + 1)..<items[group].end].filter { $0.outer == group } }
}

/// A deed done to the operations from outside.
enum SoakDeed: Sendable {
  /// From several threads at once.
  case cancel(Int, threads: Int)
  /// Whatever the operation is doing, even before its start.
  case finish(Int)
  case resume(Int)
  /// A group stays open no longer.
  case close(Int)
  case limit(Int, Int)
  case takeGhostBack(Int)
  case rename(Int)
  /// Makes all reports while the world is running.
  case lookAtEverything
}

/// What a producer does to a home, an object that lives on a scheduler.
enum SoakEvent: Sendable {
  case schedule, coalesced, object, operation, asynchronousOperation
  case delayed(ticks: Int, isCancelled: Bool)
  case run(isCancelled: Bool)
  case send(isCancelled: Bool)
  case actor
  /// Waits there, and from there for the next, and so on.
  case wait([Int])
  /// Its outcome goes to another home.
  case delivered(to: Int)
}

/// The capacity of a home's scheduler, and when it is shut down, if ever.
struct SoakHomePlan: Sendable {
  var capacity: EventCapacity?
  /// After a number of events of the first producer.
  var shutdown: (after: Int, mode: SerialScheduler.ShutdownMode)?

  /// Whether everything that is scheduled there is run.
  var takesAll: Bool { capacity == nil && shutdown == nil }
}
